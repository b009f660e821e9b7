// The watchdog of the service manager hears of a gateway only while its writer and its main thread go on.
import Board
import CLinux
import Foundation
import Host
import Testing

@testable import Gateway

/// A gateway in this process whose service manager is a socket here.
private final class Bench: Sendable {
    let folder = NSTemporaryDirectory() + "wp-" + UUID().uuidString.prefix(8)
    private let manager: Int32
    private let signals: (reading: Int32, writing: Int32)
    private let ended = DispatchSemaphore(value: 0)
    let beats = StateBox(0)

    /// `reload` is called on the gateway's main thread.
    init(reload: @escaping @Sendable () -> Void = {}) throws {
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        let manager = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let bound = UnixSocket.withAddress(Array((folder + "/notify").utf8)) {
            bind(manager, $0, $1)
        }
        self.manager = manager
        var pair: [Int32] = [0, 0]
        let paired = socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair)
        signals = (pair[0], pair[1])
        try #require(bound == 0 && paired == 0)
        _ = fcntl(pair[0], F_SETFL, O_NONBLOCK)
        follow()
        try runGateway(reload)
    }

    private func follow() {
        let (manager, beats) = (manager, beats)
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 256)
            while case let count = recv(manager, &bytes, bytes.count, 0), count > 0 {
                if bytes.prefix(count).elementsEqual("WATCHDOG=1".utf8) { beats.update { $0 += 1 } }
            }
        }
    }

    private func runGateway(_ reload: @escaping @Sendable () -> Void) throws {
        var configuration = Configuration()
        configuration.stateDirectory = folder + "/state"
        configuration.runtimeDirectory = folder + "/run"
        configuration.upload.required = false
        configuration.beacons.enabled = false
        configuration.location.enabled = false
        configuration.audio.enabled = false
        let settings = GatewaySettings(
            configuration: configuration,
            // A sign of life every tenth of a second.
            environment: ["NOTIFY_SOCKET": folder + "/notify", "WATCHDOG_USEC": "200000"],
            version: "test",
            log: Log(level: .error)
        )
        let (signals, ended) = (signals, ended)
        Thread.detachNewThread {
            do {
                try Gateway(settings).run(signals: signals.reading) {
                    reload()
                    return nil
                }
            } catch {
                Issue.record(error)
            }
            ended.signal()
        }
    }

    func signal(_ number: Int32) {
        var info = signalfd_siginfo()
        info.ssi_signo = UInt32(number)
        _ = send(signals.writing, &info, MemoryLayout<signalfd_siginfo>.size, 0)
    }

    func stop() {
        signal(SIGTERM)
        #expect(ended.wait(timeout: .now() + 60) == .success)
        shutdown(manager, Int32(SHUT_RDWR))
        close(manager)
        try? FileManager.default.removeItem(atPath: folder)
    }

    func waitUntil(_ what: String, _ condition: () -> Bool) {
        let deadline = Date().addingTimeInterval(60)
        while !condition(), Date() < deadline { usleep(2000) }
        #expect(condition(), "\(what)")
    }

    /// The snapshot that each tick of the health timer leaves, by its file.
    var snapshot: UInt {
        var figures = stat()
        return stat(folder + "/run/status.json", &figures) == 0 ? UInt(figures.st_ino) : 0
    }
}

@Suite struct WatchdogTests {
    @Test func gatewayThatWorks_isHeardOf() throws {
        let bench = try Bench()
        bench.waitUntil("three signs of life") { bench.beats.value >= 3 }
        bench.stop()
    }

    @Test func mainThreadThatHangs_isHeardOfNoMore_thoughTheTimerTicks() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let bench = try Bench(reload: {
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 60)
        })
        bench.waitUntil("a sign of life") { bench.beats.value >= 1 }
        bench.signal(SIGHUP)
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        let before = bench.beats.value
        // Five ticks, each with a snapshot in a new file.
        var (ticks, last) = (0, bench.snapshot)
        bench.waitUntil("five ticks") {
            let now = bench.snapshot
            if now != last { ticks += 1 }
            last = now
            return ticks >= 5
        }
        #expect(bench.beats.value <= before)
        mayGo.signal()
        bench.waitUntil("signs of life again") { bench.beats.value >= before + 2 }
        bench.stop()
    }
}
