// What a person reads of a status: judged by what waits, with nothing cut off in silence.
import Host
import Testing

@testable import Gateway

@Suite struct StatusScreenTests {
    private func report(_ change: (inout StatusReport) -> Void) -> StatusReport {
        StatusTests().report(change)
    }

    /// A record was refused and dropped: nothing waits, and nobody can do more about it.
    @Test func errorOfAStream_thatNothingWaitsIn_isNoFailure() {
        let refused = StatusReport.ErrorAt(code: "E003", message: "refused", at: "x")
        let waiting = report { $0.streams["beacons"]?.lastError = refused }
        #expect(waiting.state == .degraded)
        #expect(waiting.reasons == ["uploads failing: refused"])
        let empty = report {
            $0.streams["beacons"]?.lastError = refused
            $0.streams["beacons"]?.pending = 0
        }
        #expect(empty.state == .healthy)
        #expect(empty.reasons == [])
    }

    /// The uploader has not tried yet: the error is what is known of the token.
    @Test func refusedToken_isCriticalAfterAStart_too() {
        let refused = StatusReport.ErrorAt(code: "E002", message: "the token", at: "x")
        let report = report { $0.streams["beacons"]?.lastError = refused }
        #expect(report.state == .critical)
        #expect(report.reasons == ["token refused", "uploads failing: the token"])
    }
}
