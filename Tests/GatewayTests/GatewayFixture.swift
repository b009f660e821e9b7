// A whole gateway in the tests' process.
import Audio
import Beacons
import CLinux
import Foundation
import Location
import Support
import Testing
import Upload

@testable import Daemon
@testable import Host
@testable import Setup
@testable import Status

/// A gateway in this process, with a socket as its service manager.
final class GatewayFixture: Sendable {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    private let manager: Int32
    private let signals: (reading: Int32, writing: Int32)
    private let ended = DispatchSemaphore(value: 0)
    /// The counts of heartbeats and of READY messages.
    let beats = StateBox(0)
    let readies = StateBox(0)
    let log = Log(level: .error)
    /// The configuration at the start; no source is enabled.
    let configuration: Configuration

    /// `signals` are pending from the start; `reload` is called on the gateway's thread for SIGHUP.
    init(
        patience: Duration = .milliseconds(300),
        signals early: [Int32] = [],
        change: (inout Configuration) -> Void = { _ in },
        reload: @escaping @Sendable (Configuration) throws -> Configuration = { $0 }
    ) throws {
        var configuration = Configuration()
        configuration.stateDirectory = temporary.path + "/state"
        configuration.runtimeDirectory = temporary.path + "/run"
        configuration.upload.isRequired = false
        configuration.beacons.isEnabled = false
        configuration.location.isEnabled = false
        configuration.audio.isEnabled = false
        change(&configuration)
        self.configuration = configuration
        let manager = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let bound = UnixSocket.withAddress(Array((temporary.path + "/notify").utf8)) {
            bind(manager, $0, $1)
        }
        self.manager = manager
        var pair: [Int32] = [0, 0]
        let paired = socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair)
        signals = (pair[0], pair[1])
        try #require(bound == 0 && paired == 0)
        _ = fcntl(pair[0], F_SETFL, O_NONBLOCK)
        follow()
        for number in early { signal(number) }
        runGateway(patience, reload)
    }

    private func follow() {
        let (manager, beats, readies) = (manager, beats, readies)
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 256)
            while case let count = recv(manager, &bytes, bytes.count, 0), count > 0 {
                switch String(decoding: bytes.prefix(count), as: UTF8.self) {
                case "WATCHDOG=1": beats.update { $0 += 1 }
                case "READY=1": readies.update { $0 += 1 }
                default: break
                }
            }
        }
    }

    private func runGateway(
        _ patience: Duration,
        _ reload: @escaping @Sendable (Configuration) throws -> Configuration
    ) {
        var settings = GatewaySettings(
            configuration: configuration,
            // A heartbeat every tenth of a second.
            environment: ["NOTIFY_SOCKET": folder + "/notify", "WATCHDOG_USEC": "200000"],
            version: "test",
            log: log
        )
        settings.patience = patience
        let (signals, ended, gateway) = (signals, ended, settings)
        Thread.detachNewThread {
            do {
                try GatewayRun(gateway).run(signals: signals.reading) {
                    try reload(gateway.configuration)
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
    }

    /// The snapshot's report.
    var status: [String: Any] {
        let data = FileManager.default.contents(atPath: folder + "/run/status.json") ?? Data()
        return (try? JSONSerialization.jsonObject(with: data) as? [String: Any]) ?? [:]
    }

    var errors: [String] {
        let errors = status["recent_errors"] as? [[String: Any]] ?? []
        return errors.compactMap { $0["message"] as? String }
    }

    /// The snapshot's reasons for not being healthy.
    var reasons: [String] { status["reasons"] as? [String] ?? [] }

    /// Returns true once five snapshots were written, each as a new file.
    func fiveTicksPass() -> Bool {
        var (ticks, last) = (0, snapshot)
        return eventually {
            let now = snapshot
            if now != last { ticks += 1 }
            last = now
            return ticks >= 5
        }
    }

    /// The inode of the snapshot that each tick writes.
    var snapshot: UInt {
        var figures = stat()
        return stat(folder + "/run/status.json", &figures) == 0 ? UInt(figures.st_ino) : 0
    }
}

extension StoppableThread {
    func stop() { stop(by: SystemClock().now() + .seconds(60)) }
}

extension ReliableTimer {
    func cancel() { cancel(by: SystemClock().now() + .seconds(60)) }
}
