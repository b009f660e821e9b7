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
        let bench: AdapterBench

        init(start: Bool = true, receiver: Bool = true) throws {
            daemon = try GPSDaemon()
            if receiver { try daemon.plugIn() }
            if start { try daemon.start() }
            bench = try AdapterBench(port: daemon.port, clock: clock)
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
            let before = bench.sink.fixes.count
            try report(until: what) { bench.isLoaded && bench.sink.fixes.count >= before + 3 }
            #expect(bench.detail.hasPrefix("3D fix"))
        }

        func waitForReason(_ words: String) throws {
            try waitUntil("'\(words)', not '\(bench.reason ?? bench.detail)'") {
                bench.reason?.contains(words) == true
            }
        }
    }

    @Test func gpsdThatIsKilled_isTold_andItsReturnFound() throws {
        let field = try Field()
        defer { field.bench.finish() }
        try field.reportFixes("fixes")
        field.daemon.kill()
        try field.waitForReason("Connection refused; is it running?")
        try field.daemon.start()
        try field.reportFixes("fixes after gpsd was started again")
    }

    /// A reload or a stop that comes while gpsd is being connected to says nothing about gpsd.
    @Test func stopWhileConnecting_isNoFailure() throws {
        let hole = try BlackHole()
        let bench = try AdapterBench(port: hole.port)
        try waitUntil("a connection under way") { bench.call == "connect" }
        bench.finish()
        #expect(bench.reason == nil)
    }

    @Test func gpsdThatStartsLate_isFound() throws {
        let field = try Field(start: false)
        defer { field.bench.finish() }
        try field.waitForReason("Connection refused; is it running? `systemctl status gpsd.socket`")
        try field.daemon.start()
        try field.reportFixes("fixes")
    }

    @Test func frozenGPSD_isToldAfter30Seconds_staysInError_andItsFixesOfThenAreNotKept() throws {
        let field = try Field()
        defer { field.bench.finish() }
        try field.reportFixes("fixes")
        field.daemon.freeze()
        // These wait in the serial line.
        for _ in 0..<5 { field.daemon.feedFix(at: field.clock.wall()) }
        field.bench.checkHealth()
        field.clock.advance(by: .seconds(31))
        field.bench.checkHealth()
        try field.waitForReason("silent for 31 s")
        // The kernel accepts connections for a frozen gpsd: no reason to call it well.
        for _ in 0..<3 {
            field.clock.advance(by: .seconds(31))
            field.bench.checkHealth()
            #expect(field.bench.reason?.contains("silent for") == true)
        }
        field.daemon.thaw()
        try field.reportFixes("fixes after the thaw")
        for fix in field.bench.sink.fixes {
            let age = fix.stamp.wall.milliseconds - (fix.receiverTime?.milliseconds ?? 0)
            #expect(abs(age) <= 10_000)
        }
    }

    @Test func fixesThatWaitedInAFrozenGPSD_areNotKept_andCounted() throws {
        let field = try Field()
        defer { field.bench.finish() }
        try field.reportFixes("fixes")
        field.daemon.freeze()
        for _ in 0..<5 {
            field.daemon.feedFix(at: field.clock.wall())
            usleep(95_000)
        }
        // Less than the silence limit: the connection stays, and the old reports come through it.
        field.clock.advance(by: .seconds(20))
        field.daemon.thaw()
        try waitUntil("old fixes are counted") { field.bench.dropped > 0 }
        try field.reportFixes("fixes after the thaw")
        for fix in field.bench.sink.fixes {
            let age = fix.stamp.wall.milliseconds - (fix.receiverTime?.milliseconds ?? 0)
            #expect(abs(age) <= 10_000)
        }
        #expect(field.bench.detail.hasSuffix("not kept"))
    }

    @Test func receiverThatIsUnplugged_isNamed_andItsReturnFound() throws {
        let field = try Field()
        defer { field.bench.finish() }
        try field.reportFixes("fixes")
        try field.daemon.unplug()
        try field.waitForReason("has lost the GNSS receiver /dev/pts/")
        try field.daemon.plugIn()
        try field.reportFixes("fixes of the receiver that is back")
    }

    @Test func gpsdWithoutAReceiver_isTold_alsoAfterASilence() throws {
        let field = try Field(receiver: false)
        defer { field.bench.finish() }
        try field.waitForReason("has no GNSS receiver: plug one in")
        field.clock.advance(by: .seconds(31))
        field.bench.checkHealth()
        #expect(field.bench.reason?.contains("has no GNSS receiver") == true)
        try field.daemon.plugIn()
        try field.reportFixes("fixes")
    }

    @Test func hostThatSwallowsConnections_isToldInBoundedTime() throws {
        // A listener whose queue is full: the kernel drops what comes, as a black-holed host does.
        let hole = try BlackHole()
        let bench = try AdapterBench(port: hole.port)
        defer { bench.finish() }
        try waitUntil("the failure is reported") {
            bench.reason?.contains("Connection timed out; is it running?") == true
        }
    }
}
