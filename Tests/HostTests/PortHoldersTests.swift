// The program that has a port, as messages name it.
import Foundation
import Support
import Testing

@testable import Host

@Suite struct PortHoldersTests {
    @Test func programThatListens_isNamed() throws {
        let script = """
            import socket, sys
            listener = socket.create_server(("127.0.0.1", 0))
            print(listener.getsockname()[1], flush=True)
            sys.stdin.read()
            """
        let output = Pipe()
        let holder = try Process.started(
            "/usr/bin/python3",
            ["-c", script],
            input: Pipe(),
            output: output
        )
        defer { holder.killAndWait() }
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let port = try #require(UInt16(line.trimmingCharacters(in: .newlines)))
        var reason = ""
        do {
            _ = try TCPListener(HostPort(host: "127.0.0.1", port: port), waiting: 1)
        } catch let error as ConnectError {
            reason = error.reason
        }
        #expect(reason.hasPrefix("Address already in use by python3"), "\(reason)")
        #expect(reason.hasSuffix(" (process \(holder.processIdentifier))"), "\(reason)")
    }

    /// As a service sees them, which may not look into the processes of others.
    @Test func processOfAnotherUser_isNamedByItsUser() throws {
        let folder = TemporaryFolder("proc/self/net", "proc/77/fd")
        let files = SystemFiles(root: folder.path)
        #expect(files.portHolders(80) == "; run: sudo ss -ltnp sport = :80")
        func line(_ address: String, _ state: String, _ user: Int, _ inode: Int) -> String {
            "   0: \(address) 00000000:0000 \(state) 00000000:00000000 00:00000000 00000000 "
                + "\(user) 0 \(inode) 1 0000000000000000 100 0 0 10 0\n"
        }
        try folder.write(
            line("0100007F:0050", "0A", 0, 5) + line("0100007F:0050", "01", 1, 7),
            to: "proc/self/net/tcp"
        )
        let everywhere = String(repeating: "0", count: 32)
        try folder.write(line("\(everywhere):1F90", "0A", 4_242_424, 6), to: "proc/self/net/tcp6")
        let command = "; run: sudo ss -ltnp sport = :"
        #expect(files.portHolders(80) == " by a program of user root\(command)80")
        #expect(files.portHolders(8080) == " by a program of user 4242424\(command)8080")
        let links = FileManager.default
        try links.createSymbolicLink(
            atPath: folder.path + "/proc/77/fd/3",
            withDestinationPath: "socket:[5]"
        )
        try links.createSymbolicLink(
            atPath: folder.path + "/proc/77/exe",
            withDestinationPath: "/usr/bin/caddy"
        )
        #expect(files.portHolders(80) == " by caddy (process 77)")
    }
}
