import Host
import Testing
import Upload

/// When a sync may start, and how much it may send.
@Suite struct PacingTests {
    /// Holds a pacing by reference, so that an expectation may change it.
    private final class Box {
        var pacing = Pacing()

        var until: BootInstant? { pacing.until }

        func begin(_ reason: SyncReason, at now: BootInstant) -> Int? {
            pacing.begin(reason, at: now)
        }

        func failed(at now: BootInstant, after: Duration?, random: Double) {
            pacing.failed(at: now, after: after, random: random)
        }

        func cut(at now: BootInstant, random: Double) { pacing.cut(at: now, random: random) }

        func succeeded() { pacing.succeeded() }
    }

    private func at(_ seconds: Int) -> BootInstant {
        BootInstant(nanoseconds: Int64(seconds) * 1_000_000_000)
    }

    /// Returns a pacing after that many failures, each wait at its longest.
    private func failing(_ times: Int, after: Duration? = nil) -> Box {
        let pacing = Box()
        for _ in 0..<times { pacing.failed(at: at(0), after: after, random: 0.999) }
        return pacing
    }

    @Test func normalRunning_hasNoLimit() {
        let pacing = Box()
        #expect(pacing.until == nil)
        #expect(pacing.begin(.tick, at: at(0)) == nil)
        pacing.succeeded()
        #expect(pacing.begin(.retry, at: at(1)) == nil)
    }

    @Test func oneFailure_isNoOutage() {
        let pacing = failing(1)
        #expect(pacing.begin(.tick, at: at(10)) == 0)
        #expect(pacing.begin(.retry, at: at(30)) == nil)
    }

    @Test func recovery_sendsOneRequest_thenPortions() {
        let pacing = failing(5)
        #expect(pacing.begin(.tick, at: at(299)) == 0)
        #expect(pacing.begin(.retry, at: at(300)) == 1)
        pacing.cut(at: at(301), random: 0.5)
        #expect(pacing.until == at(301 + 450))
        let portion = pacing.begin(.tick, at: at(400)) ?? 0
        #expect(portion > 1)
        #expect(portion < 20)
        pacing.cut(at: at(402), random: 0)
        #expect(pacing.begin(.retry, at: at(702)) == portion)
        pacing.succeeded()
        #expect(pacing.begin(.tick, at: at(1000)) == nil)
    }

    @Test func probeThatFails_waitsOn() {
        let pacing = failing(5)
        #expect(pacing.begin(.retry, at: at(300)) == 1)
        pacing.failed(at: at(300), after: nil, random: 0.5)
        #expect(pacing.until == at(450))
        #expect(pacing.begin(.retry, at: at(450)) == 1)
    }

    @Test func personAndToken_areServedAtOnceAndWhole() {
        for reason in [SyncReason.asked, .token] {
            let pacing = failing(5, after: .seconds(3600))
            #expect(pacing.begin(reason, at: at(1)) == nil)
        }
    }

    @Test func network_liftsTheBackoff_butNotWhatTheServerOrdered() {
        let pacing = failing(5)
        #expect(pacing.begin(.network, at: at(1)) == nil)
        let ordered = failing(5, after: .seconds(600))
        #expect(ordered.begin(.network, at: at(1)) == 0)
        #expect(ordered.until != nil)
        #expect(ordered.begin(.network, at: at(1000)) == nil)
    }
}
