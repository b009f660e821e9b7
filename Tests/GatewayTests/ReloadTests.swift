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
    private func fixture(
        _ gpsd: QuietGPSD,
        signals: [Int32] = [],
        reload: @escaping @Sendable (inout Configuration) -> Void
    ) throws -> GatewayFixture {
        let port = gpsd.port
        return try GatewayFixture(
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
    private func reload(_ fixture: GatewayFixture) throws {
        try waitUntil("a start") { fixture.readies.value >= 1 }
        let before = fixture.readies.value
        fixture.signal(SIGHUP)
        try waitUntil("a reload") { fixture.readies.value > before }
    }

    @Test func unchangedFile_restartsNothing_andABurstIsOneReload() throws {
        let (gpsd, reads) = (QuietGPSD(), StateBox(0))
        let fixture = try fixture(gpsd, signals: [SIGHUP, SIGHUP, SIGHUP, SIGHUP, SIGHUP]) { _ in
            reads.update { $0 += 1 }
        }
        try waitUntil("a start and a reload") { fixture.readies.value >= 2 }
        try waitUntil("a connection") { gpsd.connections.value >= 1 }
        try reload(fixture)
        fixture.stop()
        #expect(reads.value == 2)
        #expect(gpsd.connections.value == 1)
    }

    @Test func changeOfOnePart_restartsThatPartAlone() throws {
        let (gpsd, step) = (QuietGPSD(), StateBox(0))
        let fixture = try fixture(gpsd) { configuration in
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
        try reload(fixture)
        #expect(gpsd.connections.value == 1)
        try reload(fixture)
        try waitUntil("another connection") { gpsd.connections.value == 2 }
        fixture.stop()
    }

    @Test func keyThatNeedsARestart_isNamed_andTheRestIsTaken() throws {
        let gpsd = QuietGPSD()
        let fixture = try fixture(gpsd) { configuration in
            configuration.deviceID = "another"
            configuration.stateDirectory = "/nowhere"
            configuration.logLevel = .debug
        }
        try reload(fixture)
        #expect(fixture.log.isOn(.debug))
        try waitUntil("the keys") {
            fixture.reasons.contains("restart waypost for device_id, state_directory")
        }
        fixture.stop()
    }

    @Test func fileThatCannotBeUsed_isAmongTheErrors() throws {
        let problems = Failure("no such key\nno such value")
        let fixture = try GatewayFixture(reload: { _ in throw problems })
        try waitUntil("a start") { fixture.readies.value >= 1 }
        fixture.signal(SIGHUP)
        try waitUntil("the error") {
            fixture.errors.contains { $0.hasSuffix("stays: no such key; no such value") }
        }
        fixture.stop()
    }
}
