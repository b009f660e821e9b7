// The monitor of network and token file: netlink bytes, real interfaces, real files.
import CLinux
import Foundation
import Glibc
import Host
import Support
import Testing

@testable import Daemon
@testable import Setup

@Suite struct NetlinkTests {
    private func bytes(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    private func bytes(_ value: UInt16) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    private func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        var message = bytes(UInt32(16 + body.count)) + bytes(type) + bytes(UInt16(0))
        message += bytes(UInt32(0)) + bytes(UInt32(0)) + body
        message += [UInt8](repeating: 0, count: (4 - message.count % 4) % 4)
        return message
    }

    private func link(_ type: UInt16, _ index: UInt32, flags: UInt32) -> [UInt8] {
        message(type, [0, 0, 1, 0] + bytes(index) + bytes(flags) + bytes(UInt32.max))
    }

    private func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        var attribute = bytes(UInt16(4 + value.count)) + bytes(type) + value
        attribute += [UInt8](repeating: 0, count: (4 - attribute.count % 4) % 4)
        return attribute
    }

    private func address(_ type: UInt16, _ flags: UInt8, _ attributes: [UInt8]) -> [UInt8] {
        message(type, [2, 24, flags, 0] + bytes(UInt32(7)) + attributes)
    }

    @Test func messages_giveLinksAndAddresses() {
        let local = attribute(1, [10, 0, 0, 9]) + attribute(2, [10, 0, 0, 1])
        var data = link(16, 3, flags: 0x11043) + link(17, 3, flags: 0)
        data += message(24, [1, 2, 3, 4]) + address(20, 0, local) + address(21, 0, local)
        data += address(20, 0x40, attribute(1, [UInt8](repeating: 1, count: 16)))
        data += address(
            20,
            0,
            attribute(3, [97, 0]) + attribute(1, [1, 2, 3, 4]) + attribute(8, bytes(UInt32(0x40)))
        )
        #expect(
            NetlinkMessages.events(data) == [
                .link(index: 3, flags: 0x11043), .link(index: 3, flags: nil),
                .address(index: 7, bytes: [10, 0, 0, 1], isUsable: true),
                .address(index: 7, bytes: [10, 0, 0, 1], isUsable: false),
                .address(index: 7, bytes: [UInt8](repeating: 1, count: 16), isUsable: false),
                .address(index: 7, bytes: [1, 2, 3, 4], isUsable: false),
            ]
        )
    }

    @Test func brokenMessages_endWhereTheyAreBroken() {
        let good = link(16, 3, flags: 1)
        // Cut anywhere: only the whole messages before the cut are read.
        let two = good + address(20, 0, attribute(2, [10, 0, 0, 1]))
        for count in 0..<two.count {
            let events = NetlinkMessages.events(Array(two.prefix(count)))
            #expect(events == (count < good.count ? [] : [.link(index: 3, flags: 1)]))
        }
        for length: UInt32 in [0, 1, 15, 0x7FFF_FFFF, .max] {
            var broken = good
            broken.replaceSubrange(0..<4, with: bytes(length))
            #expect(NetlinkMessages.events(broken + good).isEmpty)
        }
        // An attribute longer than the message, or shorter than its header.
        for length: UInt16 in [0, 3, 9, .max] {
            var part = attribute(2, [10, 0, 0, 1])
            part.replaceSubrange(0..<2, with: bytes(length))
            #expect(NetlinkMessages.events(address(20, 0, part)).isEmpty)
        }
        #expect(NetlinkMessages.events(message(16, [])).isEmpty)
        #expect(NetlinkMessages.events(message(20, [2, 24, 0, 0])).isEmpty)
    }

    @Test func anyBytes_areRead() {
        var random = SystemRandomNumberGenerator()
        let whole = link(16, 3, flags: 1) + address(20, 0, attribute(2, [10, 0, 0, 1]))
        for _ in 0..<20_000 {
            var data = whole
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                data[Int.random(in: 0..<data.count)] = UInt8.random(in: 0...255, using: &random)
            }
            #expect(NetlinkMessages.events(data).count <= data.count / 16)
        }
    }

    @Test func memory_knowsWhatIsNews() {
        let up: UInt32 = 0x11043
        let loopback = [UInt8](repeating: 0, count: 15) + [1]
        let mine = NetworkEvent.address(index: 3, bytes: [10, 0, 0, 1], isUsable: true)
        let gone = NetworkEvent.address(index: 3, bytes: [10, 0, 0, 1], isUsable: false)
        let story: [(event: NetworkEvent, isNews: Bool)] = [
            (.link(index: 3, flags: up), true),
            // A scan or a counter repeats the flags. Promiscuous mode does not change the carrier.
            (.link(index: 3, flags: up), false),
            (.link(index: 3, flags: up | 0x100), false),
            (.link(index: 3, flags: 0x1003), true),
            (.link(index: 3, flags: up), true),
            (.link(index: 1, flags: 0x10049), false),
            (.address(index: 1, bytes: [127, 0, 0, 1], isUsable: true), false),
            (.address(index: 1, bytes: loopback, isUsable: true), false),
            (mine, true), (mine, false), (gone, true), (gone, false), (mine, true),
            (.link(index: 3, flags: nil), true), (.link(index: 3, flags: nil), false),
            // The address was removed with its interface.
            (mine, true),
        ]
        var memory = NetworkMemory()
        for (number, part) in story.enumerated() {
            let isNews = memory.notes(part.event)
            #expect(isNews == part.isNews, "\(number): \(part.event)")
        }
    }

    @Test func memory_isBounded() {
        var memory = NetworkMemory()
        for index in 0..<10_000 { _ = memory.notes(.link(index: Int32(index), flags: 1)) }
        // The oldest interface was evicted, so it counts as new.
        let isNews = memory.notes(.link(index: 0, flags: 1))
        #expect(isNews)
    }

    @Test func changes_areGathered_andNeverToldTooOften() {
        var change = Debounce()
        #expect(change.due == nil)
        change.changed(at: 100_000)
        change.changed(at: 101_000)
        #expect(change.due == 102_500)
        let told = [102_499, 102_500, 102_500].map { change.isOver(at: $0) }
        #expect(told == [false, true, false])
        // A flapping link is reported after five seconds, then every fifteen.
        for at in stride(from: Int64(103_000), to: 120_000, by: 500) { change.changed(at: at) }
        #expect(change.due == 117_500)
        let again = change.isOver(at: 120_000)
        #expect(again)
        for at in stride(from: Int64(200_000), to: 210_000, by: 500) { change.changed(at: at) }
        #expect(change.due == 205_000)
    }
}

@Suite struct ConnectivityTests {
    /// The reports of a monitor.
    private final class Told: Sendable {
        let network = StateBox(0)
        let token = StateBox(0)
    }

    private func connectivity(_ told: Told, token: String? = nil) -> Connectivity {
        Connectivity(
            tokenFile: token,
            token: { try Token.read(file: token, environment: [:], for: nil) },
            clock: SystemClock(),
            onNetwork: { told.network.update { $0 += 1 } },
            onToken: { told.token.update { $0 += 1 } },
            log: nil
        )
    }

    /// Without Foundation's Process, whose run loop would make sockets in this thread's network.
    private static func ip(_ arguments: String) -> Bool {
        let command = "PATH=/usr/sbin:/usr/bin:/sbin:/bin; ip \(arguments) 2>/dev/null"
        let texts: [String] = ["/bin/sh", "-c", command]
        var words: [UnsafeMutablePointer<CChar>?] = texts.map { (text: String) in strdup(text) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var child = pid_t()
        guard posix_spawn(&child, "/bin/sh", nil, nil, &words, nil) == 0 else { return false }
        var status: Int32 = -1
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    /// An interface comes up and gets an address, in a separate network namespace.
    @Test func interfaceThatComesUp_isTold() throws {
        let told = Told()
        let watch = connectivity(told)
        let stop = try StopSignal()
        // 0: not yet known; 1: a namespace with interfaces; 2: this machine does not allow it.
        let state = StateBox(0)
        let thread = try OwnThread("own network") {
            // Only for this thread and its children.
            guard waypost_own_network() == 0, Self.ip("link add w0 type veth peer name w1") else {
                return state.update { $0 = 2 }
            }
            let watching = try? StoppableThread("watch") { watch.run(until: $0) }
            state.update { $0 = 1 }
            // Repeated, because the monitor may not have begun yet.
            while !stop.isRaised {
                _ = Self.ip("link set w0 up && ip link set w1 up && ip addr add 10.9.9.1/24 dev w0")
                if stop.sleep(for: .milliseconds(300)) { break }
                _ = Self.ip("link set w0 down && ip addr flush dev w0")
            }
            watching?.stop()
        }
        _ = eventually { state.value != 0 }
        let isTold = state.value == 1 && eventually { told.network.value > 0 }
        stop.raise()
        thread.join()
        guard state.value == 1 else {
            print(
                "interfaceThatComesUp_isTold: skipped, no network namespace with veth here (needs root)"
            )
            return
        }
        #expect(isTold)
    }

    @Test(arguments: ["rewrite", "replace", "mode", "appear"])
    func tokenFileThatChanges_isTold_onceForEachToken(way: String) throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let file = folder + "/token"
        func write(_ token: String, to path: String, mode: Int = 0o600) throws {
            try token.write(toFile: path, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        if way != "appear" { try write("old", to: file, mode: way == "mode" ? 0o644 : 0o600) }
        let told = Told()
        let watch = connectivity(told, token: file)
        let thread = try StoppableThread("watch") { watch.run(until: $0) }
        defer { thread.stop() }
        // The monitor may begin after the change: repeat it, with a new token each time.
        var number = 0
        let isTold = eventually {
            number += 1
            switch way {
            case "replace":
                try? write("new\(number)", to: file + ".new")
                rename(file + ".new", file)
            case "mode":
                chmod(file, 0o644)
                try? "new\(number)".write(toFile: file, atomically: false, encoding: .utf8)
                chmod(file, 0o600)
            default: try? write("new\(number)", to: file)
            }
            usleep(400_000)
            return told.token.value > 0
        }
        #expect(isTold)
        #expect(told.token.value <= number)
        #expect(told.network.value >= 0)
    }
}
