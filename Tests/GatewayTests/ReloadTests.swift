// The effects of a reload: each restart of a source is a new connection to its gpsd.
import CLinux
import Configuration
import Foundation
import Glibc
import Host
import Location
import Queue
import Status
import Support
import Testing
import Upload

import Daemon
import Setup

/// A gpsd that accepts connections, sends nothing and counts them.
private final class QuietGPSD: Sendable {
    let port: UInt16
    let connections = StateBox(0)
    private let socket: Int32

    init() {
        let (number, port) = listening()
        (socket, self.port) = (number, port)
        let connections = connections
        Thread.detachNewThread {
            // Never closed: accepted connections stay open.
            while accept(number, nil, nil) >= 0 { connections.update { $0 += 1 } }
        }
    }

    deinit {
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }
}

@Suite struct ReloadTests {
    /// A gateway with one source, which follows `gpsd`.
    private func bench(
        _ gpsd: QuietGPSD,
        signals: [Int32] = [],
        reload: @escaping @Sendable (inout Configuration) -> Void
    ) throws -> GatewayBench {
        let port = gpsd.port
        return try GatewayBench(
            patience: .seconds(30),
            signals: signals,
            change: { configuration in
                configuration.location.isEnabled = true
                configuration.location.gpsd = HostPort(host: "127.0.0.1", port: port)
            },
            reload: { configuration in
                var new = configuration
                reload(&new)
                return new
            }
        )
    }

    /// Reloads, and returns once that is done.
    private func reload(_ bench: GatewayBench) throws {
        try waitUntil("a start") { bench.readies.value >= 1 }
        let before = bench.readies.value
        bench.signal(SIGHUP)
        try waitUntil("a reload") { bench.readies.value > before }
    }

    @Test func unchangedFile_restartsNothing_andABurstIsOneReload() throws {
        let (gpsd, reads) = (QuietGPSD(), StateBox(0))
        let bench = try bench(gpsd, signals: [SIGHUP, SIGHUP, SIGHUP, SIGHUP, SIGHUP]) { _ in
            reads.update { $0 += 1 }
        }
        try waitUntil("a start and a reload") { bench.readies.value >= 2 }
        try waitUntil("a connection") { gpsd.connections.value >= 1 }
        try reload(bench)
        bench.stop()
        #expect(reads.value == 2)
        #expect(gpsd.connections.value == 1)
    }

    @Test func changeOfOnePart_restartsThatPartAlone() throws {
        let (gpsd, step) = (QuietGPSD(), StateBox(0))
        let bench = try bench(gpsd) { configuration in
            switch step.update({ step in
                step += 1
                return step
            }) {
            case 1:
                configuration.upload.interval = .seconds(77)
                configuration.storage.limits.warnFree = 12_345_678
            default: configuration.location.interval = .seconds(3)
            }
        }
        try waitUntil("a connection") { gpsd.connections.value == 1 }
        try reload(bench)
        #expect(gpsd.connections.value == 1)
        try reload(bench)
        try waitUntil("another connection") { gpsd.connections.value == 2 }
        bench.stop()
    }

    @Test func keyThatNeedsARestart_isNamed_andTheRestIsTaken() throws {
        let gpsd = QuietGPSD()
        let bench = try bench(gpsd) { configuration in
            configuration.deviceID = "another"
            configuration.stateDirectory = "/nowhere"
            configuration.logLevel = .debug
        }
        try reload(bench)
        #expect(bench.log.isOn(.debug))
        try waitUntil("the keys") {
            bench.reasons.contains("restart waypost for device_id, state_directory")
        }
        bench.stop()
    }

    @Test func fileThatCannotBeUsed_isAmongTheErrors() throws {
        let bench = try GatewayBench(reload: { _ in throw Failure("no such key\nno such value") })
        try waitUntil("a start") { bench.readies.value >= 1 }
        bench.signal(SIGHUP)
        try waitUntil("the error") {
            bench.errors.contains { $0.hasSuffix("stays: no such key; no such value") }
        }
        bench.stop()
    }
}
