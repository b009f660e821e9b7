// The losses of the last day, from totals that are remembered by the hour.
import Host
import Support
import Testing

@testable import Status

@Suite struct LossHistoryTests {
    private static func at(_ hours: Int, wall: Int = 0) -> Stamp {
        let time = testStart.advanced(by: .seconds(hours * 3600))
        return Stamp(boot: time.boot, wall: time.wall + .seconds(wall * 3600))
    }

    private static func loss(
        _ records: Int,
        _ kind: String = "missed",
        until end: Stamp
    ) -> StatusReport.Loss {
        .init(stream: "air", kind: kind, records: records, from: testStart.wall, to: end.wall)
    }

    @Test func lossesOfAllKinds_areSummed_andTextReadsBack() {
        var history = LossHistory(text: nil)
        let now = Self.at(1)
        let losses = [Self.loss(2, until: now), Self.loss(3, "gap", until: now)]
        #expect(history.ofLastDay(losses, "a", at: now, isRight: true) == ["air": 5])
        #expect(LossHistory(text: history.text) == history)
    }

    /// The device was off for two days, and its clock was right before and is now.
    @Test func totalsOfAnotherBoot_countByTheWallClock() {
        var history = LossHistory(text: nil)
        let before = Self.at(1)
        let losses = [Self.loss(2, until: before)]
        _ = history.ofLastDay(losses, "a", at: before, isRight: true)
        let now = Self.at(0, wall: 49)
        #expect(history.ofLastDay(losses, "b", at: now, isRight: true).isEmpty)
        let more = [Self.loss(9, until: now)]
        #expect(history.ofLastDay(more, "b", at: now, isRight: true) == ["air": 7])
    }

    /// Without a right clock nobody knows how long ago an earlier boot was: nothing is hidden.
    @Test func lossThatCannotBeDated_counts() {
        var history = LossHistory(text: nil)
        let before = Self.at(1, wall: -500_000)
        let losses = [Self.loss(2, until: Self.at(2))]
        _ = history.ofLastDay(losses, "a", at: before, isRight: false)
        let now = Self.at(2)
        #expect(history.ofLastDay(losses, "b", at: now, isRight: true) == ["air": 2])
    }

    /// A database that was lost took the totals along, but its ledger was inherited.
    @Test func oldLossWithoutTotals_isOld() {
        var history = LossHistory(text: "{\"totals\":[{\"boot\":5}]}")
        let losses = [Self.loss(2, until: Self.at(1))]
        #expect(history.ofLastDay(losses, "a", at: Self.at(26), isRight: true).isEmpty)
        #expect(history.ofLastDay(losses, "a", at: Self.at(24), isRight: true) == ["air": 2])
    }

    /// The clock of each boot begins in the past.
    @Test func clocksThatGoWrong_makeItNoLarger() {
        var history = LossHistory(text: nil)
        let losses = [Self.loss(1, until: testStart)]
        for boot in 0..<500 {
            let now = Self.at(1, wall: -boot)
            _ = history.ofLastDay(losses, "\(boot)", at: now, isRight: true)
        }
        #expect(history.text.utf8.count < 10_000)
    }
}
