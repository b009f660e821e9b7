// The listening socket of the Bluetooth proxy.
import Foundation
import Support
import Testing

@testable import Host

@Suite struct TCPListenerTests {
    @Test(arguments: ["127.0.0.1", "::1"])
    func anyAddress_isReachedByBothProtocols(address: String) throws {
        if address == "::1" {
            let addresses = try String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)
            guard addresses.contains(" lo\n") else { return }
        }
        let port = freePort()
        let listener = try TCPListener(HostPort(host: "::", port: port), waiting: 4)
        let script =
            "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)"
        let client = try Process.run("/usr/bin/python3", ["-c", script, address, "\(port)"])
        #expect(client.status == 0, "\(client.error)")
        var clients = 0
        #expect(
            listener.acceptAll {
                clients += 1
                close($0)
            }
        )
        #expect(clients == 1)
    }
}
