// Checks that the status names an invariant that did not hold.
import Testing

@testable import Status

@Suite struct InvariantStatusTests {
    private let status = StatusTests()

    @Test func brokenInvariant_isDegraded_andNamed() {
        #expect(!String(decoding: status.report().json, as: UTF8.self).contains("broken_invariant"))
        let broken = status.report {
            ($0.daemon.brokenInvariants, $0.daemon.brokenInvariant) = (2, "numbers ascend (Q:1)")
        }
        #expect(broken.state == .degraded)
        #expect(
            broken.reasons.first
                == "an invariant does not hold: numbers ascend (Q:1); please report it"
        )
        #expect(StatusReport(json: broken.json)?.daemon.brokenInvariants == 2)
    }
}
