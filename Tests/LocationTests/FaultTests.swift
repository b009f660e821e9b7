// gpsd stopped, late, frozen, without its receiver: the state and its reason are right, and it recovers by itself.
import CLinux
import Foundation
import Host
import Queue
import Records
import SourceSupport
import Support
import Testing

import Location

@Suite(.serialized, .enabled(if: Tree.hasTool("gpsd"), "deploy/test --prepare unpacks gpsd"))
struct LocationFaultTests {
    /// A source connected to a gpsd whose GNSS receiver reports ten times per second.
    private final class Field {
        let daemon: GPSDaemon
        let clock = ShiftedClock()
        let fixture: AdapterFixture

        init(start: Bool = true, receiver: Bool = true) throws {
            daemon = try GPSDaemon()
            if receiver { try daemon.plugIn() }
            if start { try daemon.start() }
            fixture = try AdapterFixture(port: daemon.port, clock: clock)
        }

        /// Waits for a condition while the receiver reports.
        func report(until what: String, _ condition: () -> Bool) throws {
            try waitUntil(what) {
                daemon.feedFix(at: clock.wall())
                usleep(95_000)
                return condition()
            }
        }

        func reportFixes(_ what: String) throws {
            let before = fixture.sink.fixes.count
            try report(until: what) { fixture.isLoaded && fixture.sink.fixes.count >= before + 3 }
            #expect(fixture.detail.hasPrefix("3D fix"))
        }

        func waitForReason(_ words: String) throws {
            try waitUntil("'\(words)', not '\(fixture.reason ?? fixture.detail)'") {
                fixture.reason?.contains(words) == true
            }
        }
    }

    @Test func killedGPSD_isReported_andItsReturnDetected() throws {
        let field = try Field()
        defer { field.fixture.finish() }
        try field.reportFixes("fixes")
        field.daemon.kill()
        try field.waitForReason("Connection refused; is it running?")
        try field.daemon.start()
        try field.reportFixes("fixes after gpsd was started again")
    }

    /// A reload or a stop that comes while gpsd is being connected to says nothing about gpsd.
    @Test func stopWhileConnecting_isNoFailure() throws {
        let hole = try BlackHole()
        let fixture = try AdapterFixture(port: hole.port)
        try waitUntil("a connection under way") { fixture.call == "connect" }
        fixture.finish()
        #expect(fixture.reason == nil)
    }

    @Test func gpsdThatStartsLate_isFound() throws {
        let field = try Field(start: false)
        defer { field.fixture.finish() }
        try field.waitForReason("Connection refused; is it running? `systemctl status gpsd.socket`")
        try field.daemon.start()
        try field.reportFixes("fixes")
    }

    @Test func frozenGPSD_isReported_andItsLateFixesAreDropped() throws {
        let field = try Field()
        defer { field.fixture.finish() }
        try field.reportFixes("fixes")
        field.daemon.freeze()
        // These wait in the serial line.
        for _ in 0..<5 { field.daemon.feedFix(at: field.clock.wall()) }
        field.fixture.checkHealth()
        field.clock.advance(by: .seconds(31))
        field.fixture.checkHealth()
        try field.waitForReason("silent for 31 s")
        // The kernel accepts connections for a frozen gpsd: no reason to call it well.
        for _ in 0..<3 {
            field.clock.advance(by: .seconds(31))
            field.fixture.checkHealth()
            #expect(field.fixture.reason?.contains("silent for") == true)
        }
        field.daemon.thaw()
        try field.reportFixes("fixes after the thaw")
        for fix in field.fixture.sink.fixes {
            let age = fix.stamp.wall.milliseconds - (fix.receiverTime?.milliseconds ?? 0)
            #expect(abs(age) <= 10_000)
        }
    }

    @Test func fixesThatWaitedInAFrozenGPSD_areNotKept_andCounted() throws {
        let field = try Field()
        defer { field.fixture.finish() }
        try field.reportFixes("fixes")
        field.daemon.freeze()
        for _ in 0..<5 {
            field.daemon.feedFix(at: field.clock.wall())
            usleep(95_000)
        }
        // Less than the silence limit: the connection stays, and the old reports come through it.
        field.clock.advance(by: .seconds(20))
        field.daemon.thaw()
        try waitUntil("old fixes are counted") { field.fixture.dropped > 0 }
        try field.reportFixes("fixes after the thaw")
        for fix in field.fixture.sink.fixes {
            let age = fix.stamp.wall.milliseconds - (fix.receiverTime?.milliseconds ?? 0)
            #expect(abs(age) <= 10_000)
        }
        #expect(field.fixture.detail.hasSuffix("not kept"))
    }

    @Test func receiverThatIsUnplugged_isNamed_andItsReturnFound() throws {
        let field = try Field()
        defer { field.fixture.finish() }
        try field.reportFixes("fixes")
        try field.daemon.unplug()
        try field.waitForReason("has lost the GNSS receiver /dev/pts/")
        try field.daemon.plugIn()
        try field.reportFixes("fixes of the receiver that is back")
    }

    @Test func gpsdWithoutReceiver_isReported_afterASilenceToo() throws {
        let field = try Field(receiver: false)
        defer { field.fixture.finish() }
        try field.waitForReason("has no GNSS receiver: plug one in")
        field.clock.advance(by: .seconds(31))
        field.fixture.checkHealth()
        #expect(field.fixture.reason?.contains("has no GNSS receiver") == true)
        try field.daemon.plugIn()
        try field.reportFixes("fixes")
    }

    @Test func unresponsiveHost_isReportedInBoundedTime() throws {
        // A listener whose queue is full: the kernel drops what comes, as a black-holed host does.
        let hole = try BlackHole()
        let fixture = try AdapterFixture(port: hole.port)
        defer { fixture.finish() }
        try waitUntil("the failure is reported") {
            fixture.reason?.contains("Connection timed out; is it running?") == true
        }
    }
}
