// When a source that receives data is in error.
import Host
import Testing

import StatusBoard

@Suite struct SourceMeterTests {
    private let board = Publisher<SourceReport>()

    private func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: (1000 + seconds) * 1_000_000_000)
    }

    private var reason: String? {
        if case .error(let failure, _) = board.state { failure.message } else { nil }
    }

    /// Data that cannot be used, once a second.
    private func feed(_ meter: inout SourceMeter, _ seconds: Range<Int64>) {
        for second in seconds {
            meter.drop()
            meter.unusable(Failure("useless"), at: at(second))
            meter.update(at(second))
        }
    }

    @Test func uselessData_isAnErrorAfterAMinute_untilUsable() {
        var meter = SourceMeter(device: "x", board: board)
        meter.working("working", now: at(0))
        feed(&meter, 0..<60)
        #expect(reason == nil)
        feed(&meter, 60..<62)
        #expect(reason == "useless")
        // This holds whatever the source reports.
        meter.working("still working", now: at(62))
        meter.failed(Failure("gone"))
        #expect(reason == "gone")
        meter.working("back", now: at(64))
        #expect(reason == "useless")
        meter.usable()
        meter.update(at(65))
        #expect(reason == nil)
        #expect(board.state.value?.dropped == 62)
    }

    @Test func persistentError_renewsFiguresOncePerMinute() {
        var meter = SourceMeter(device: "x", board: board)
        feed(&meter, 0..<62)
        #expect(board.state.value?.dropped == 61)
        feed(&meter, 62..<100)
        #expect(board.state.value?.dropped == 61)
        #expect(meter.updateDelay(at(100)) == .seconds(20))
        feed(&meter, 100..<130)
        #expect((board.state.value?.dropped ?? 0) > 100)
    }

    @Test func usableDataInBetween_orAPause_beginsTheMinuteAgain() {
        var meter = SourceMeter(device: "x", board: board)
        feed(&meter, 0..<50)
        meter.usable()
        feed(&meter, 50..<100)
        #expect(reason == nil)
        feed(&meter, 200..<250)
        #expect(reason == nil)
        #expect(meter.isUseless(at: at(251)))
        #expect(!meter.isUseless(at: at(300)))
    }
}
