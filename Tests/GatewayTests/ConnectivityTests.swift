// The monitor of network and token file: interfaces and addresses, real ones too, and real files.
import CLinux
import Foundation
import Glibc
import Host
import Support
import Testing

@testable import Daemon
@testable import Setup

@Suite struct NetworkStateTests {
    /// A link that carries traffic (0x11043), as the kernel reports it.
    private func state(
        flags: UInt32 = 0x11043,
        ipv4: UInt32? = nil,
        ipv6: String = ""
    ) -> NetworkState {
        var state = NetworkState()
        state.add("eth0", flags: flags, ipv4: ipv4)
        state.add(ipv6: ipv6)
        return state
    }

    @Test func state_changesOnlyWithCarrierOrAddresses() {
        let up = state()
        // Promiscuous mode does not change the carrier.
        #expect(state(flags: 0x11143) == up)
        #expect(state(flags: 0x1003) != up)
        #expect(NetworkState() != up)
        #expect(state(ipv4: 0x0100_000A) != up)
        #expect(state(ipv4: 0x0100_000A) != state(ipv4: 0x0200_000A))
        var both = up
        both.add("lo", flags: 0x10049, ipv4: 0x0100_007F)
        both.add(ipv6: "00000000000000000000000000000001 01 80 10 80       lo\n")
        #expect(both == up)
        both.add("wlan0", flags: 0x1003)
        #expect(both != up)
    }

    /// An address can be used only once no other device has answered for it.
    @Test func ipv6Address_countsOnceItIsUsable() {
        func address(_ flags: String) -> NetworkState {
            state(ipv6: "fe80000000000000ba27ebfffe000001 02 40 20 \(flags)     eth0\n")
        }
        #expect(address("80") != state())
        // A router advertisement may make it deprecated, and that is not a change.
        #expect(address("a0") == address("80"))
        for flags in ["c0", "40", "48", "08", "no"] { #expect(address(flags) == state()) }
        for table in ["eth0", "fe80 02 40 20 80", "\n\n", "fe80 02 40 20 80 eth1"] {
            #expect(state(ipv6: table) == state())
        }
    }

    @Test func presentState_isReadTheSameTwice() { #expect(NetworkState.current() == .current()) }

    @Test func changes_areDebounced_andRateLimited() {
        var change = Debounce()
        #expect(change.due == nil)
        change.changed(at: 100_000)
        change.changed(at: 101_000)
        #expect(change.due == 102_500)
        let reported = [102_499, 102_500, 102_500].map { change.isOver(at: $0) }
        #expect(reported == [false, true, false])
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
    private final class Reported: Sendable {
        let network = StateBox(0)
        let token = StateBox(0)
    }

    private func connectivity(_ reported: Reported, token: String? = nil) -> Connectivity {
        Connectivity(
            tokenFile: token,
            token: { try Token.read(file: token, environment: [:], for: nil) },
            clock: SystemClock(),
            onNetwork: { reported.network.update { $0 += 1 } },
            onToken: { reported.token.update { $0 += 1 } },
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
    @Test func interfaceUp_isReported() throws {
        let reported = Reported()
        let watch = connectivity(reported)
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
        let isReported = state.value == 1 && eventually { reported.network.value > 0 }
        stop.raise()
        thread.join()
        guard state.value == 1 else {
            print(
                "interfaceUp_isReported: skipped, no network namespace with veth here (needs root)"
            )
            return
        }
        #expect(isReported)
    }

    @Test(arguments: ["rewrite", "replace", "mode", "appear"])
    func changedTokenFile_isReported_oncePerToken(way: String) throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let file = folder + "/token"
        func write(_ token: String, to path: String, mode: Int = 0o600) throws {
            try token.write(toFile: path, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        if way != "appear" { try write("old", to: file, mode: way == "mode" ? 0o644 : 0o600) }
        let reported = Reported()
        let watch = connectivity(reported, token: file)
        let thread = try StoppableThread("watch") { watch.run(until: $0) }
        defer { thread.stop() }
        // The monitor may begin after the change: repeat it, with a new token each time.
        var number = 0
        let isReported = eventually {
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
            return reported.token.value > 0
        }
        #expect(isReported)
        #expect(reported.token.value <= number)
        #expect(reported.network.value >= 0)
    }
}
