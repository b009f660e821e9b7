import Host
import Records
import Testing

@testable import Queue

/// The pure account of one source: each history ends in intervals that tile its time.
@Suite struct EffortAccountTests {
    private func time(_ second: Int, _ boot: String = "a") -> EffortTime {
        EffortTime(afterNoon: second, boot)
    }

    private func words(_ intervals: [SealedSpan]) -> [String] { effortWords(intervals) }

    private func seal(
        _ account: inout EffortAccount,
        at now: EffortTime,
        isDated: Bool = true
    ) -> [String] {
        words(
            account.seal(at: now, number: 9) { isDated ? $0.stamp.wall.milliseconds : nil }
        )
    }

    /// Notes changes of a source: "listening", "starting", "failed", "off", "scheduled", each with
    /// its second.
    private func record(_ account: inout EffortAccount, _ changes: (String, Int)...) {
        for (word, second) in changes {
            let effort: SourceEffort =
                switch word {
                case "listening": .listening
                case "starting": .starting
                case "off": .off("stopped")
                case "scheduled": .scheduledOff("schedule")
                default: .failed(word)
                }
            account.record(effort, at: time(second), number: Int64(second))
        }
    }

    private func radio(_ changes: (String, Int)...) -> EffortAccount {
        var account = EffortAccount(isAudio: false)
        for (word, second) in changes { record(&account, (word, second)) }
        return account
    }

    // MARK: A source that listens

    @Test func changes_tileTheTimeSinceTheFirstUse() {
        var account = radio(
            ("off", 0),
            ("starting", 1),
            ("listening", 2),
            ("unplugged", 10),
            ("starting", 12),
            ("cannot open", 13),
            ("listening", 20),
            ("scheduled", 30),
            ("listening", 40),
            ("off", 50),
            ("off", 51)
        )
        #expect(
            seal(&account, at: time(70)) == [
                "recorded 2..10", "failed 10..20", "recorded 20..30", "scheduled_off 30..40",
                "recorded 40..50",
            ]
        )
        #expect(account.spans.map(\.state) == [.off])
    }

    @Test func failureKeepsItsFirstReason_butForAStart() {
        var account = radio(
            ("listening", 0),
            ("unplugged", 5),
            ("cannot open", 6),
            ("listening", 9),
            ("starting", 20),
            ("no adapter", 21),
            ("listening", 30)
        )
        let intervals = account.seal(at: time(60), number: nil) {
            $0.stamp.wall.milliseconds
        }
        #expect(intervals.map(\.reason) == ["", "unplugged", "", "no adapter"])
        #expect(intervals.map(\.records) == [5, 4, 11, 10])
    }

    @Test func loss_splitsWhatWasRecorded() {
        var account = radio(("listening", 0), ("off", 40), ("listening", 50))
        account.lose(from: time(10), to: time(12), "overrun", number: 3)
        account.lose(from: time(38), to: time(52), "disk", number: 3)
        // From the first to the last lost record, and not a second of rest.
        #expect(
            account.spans.map(\.state) == [
                .recorded, .failed, .recorded, .failed, .off, .failed, .recorded,
            ]
        )
        #expect(
            seal(&account, at: time(90)) == [
                "recorded 0..10", "failed 10..12", "recorded 12..38", "failed 38..40",
                "off 40..50", "failed 50..52",
            ]
        )
    }

    /// The process was stopped; its source fails before its schedule looks at what passed.
    @Test func passedWindows_areCounted_afterANewerFailureToo() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("listening", 0))
        account.hear(from: time(0), to: time(4), isContinued: false, number: 1)
        record(&account, ("overrun", 40), ("scheduled", 5), ("late", 10), ("scheduled", 15))
        record(&account, ("late", 30), ("scheduled", 35), ("scheduled", 35))
        #expect(account.spans.last?.state == .scheduledOff)
        record(&account, ("late", 50))
        #expect(
            seal(&account, at: time(100)) == [
                "recorded 0..4", "scheduled_off 4..10", "failed 10..15", "scheduled_off 15..30",
                "failed 30..35", "scheduled_off 35..50",
            ]
        )
    }

    /// The microphone came back before its window, and the first sample is a millisecond late.
    @Test func audioAtWindowStart_leavesNoEarlierFailure() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("scheduled", 0), ("absent", 10))
        account.hear(
            from: time(10).advanced(by: 1),
            to: time(15),
            isContinued: false,
            number: 1
        )
        record(&account, ("scheduled", 15), ("late", 30))
        #expect(
            seal(&account, at: time(100)) == [
                "scheduled_off 0..10", "recorded 10..15", "scheduled_off 15..30",
            ]
        )
    }

    @Test func lossBeforeWhatIsSealed_changesNothing() {
        var account = radio(("listening", 0), ("gone", 10), ("listening", 20))
        _ = seal(&account, at: time(60))
        account.lose(from: time(2), to: time(15), "overrun", number: 3)
        #expect(account.spans.map(\.state) == [.recorded])
        account.lose(from: time(2), to: time(25), "overrun", number: 3)
        #expect(account.spans.map(\.state) == [.failed, .recorded])
        #expect(account.spans[0].from == time(20))
    }

    @Test func nothingIsSealedThatMayChange() {
        var account = radio(("listening", 0), ("gone", 10))
        #expect(seal(&account, at: time(19)) == [])
        #expect(seal(&account, at: time(20)) == ["recorded 0..10"])
        record(&account, ("listening", 30))
        // Without a clock it waits ten minutes: a midnight may be in it.
        #expect(seal(&account, at: time(629), isDated: false) == [])
        #expect(seal(&account, at: time(630), isDated: false) == ["failed 10..30"])
    }

    // MARK: Days

    @Test func midnight_closesAnInterval() {
        var account = radio(("listening", 0))
        let midnight = 43_200
        #expect(seal(&account, at: time(midnight + 5)) == [])
        #expect(seal(&account, at: time(midnight + 15)) == ["recorded 0..\(midnight)"])
        let days = (1...3).map {
            "recorded \(midnight + ($0 - 1) * 86_400)..\(midnight + $0 * 86_400)"
        }
        #expect(seal(&account, at: time(midnight + 3 * 86_400 + 11)) == days)
    }

    @Test func monthsOff_areOneInterval() {
        var account = radio(("listening", 0), ("off", 10))
        #expect(seal(&account, at: time(86_400 * 60)) == ["recorded 0..10"])
        record(&account, ("listening", 86_400 * 60))
        #expect(seal(&account, at: time(86_400 * 60 + 10)) == ["off 10..\(86_400 * 60)"])
    }

    @Test func sourceThatFailsAllDay_hasBoundedRecords() {
        var account = radio(("listening", 0))
        var count = 0
        for second in stride(from: 10, to: 43_000, by: 20) {
            account.lose(from: time(second), to: time(second), "missed", number: 1)
            let sealed = seal(&account, at: time(second + 15))
            if count < 20 { #expect(!sealed.isEmpty || second < 30) }
            count += sealed.count
            #expect(account.spans.count < 300)
        }
        #expect(count > 24 && count < 100)
        record(&account, ("off", 43_000))
        _ = seal(&account, at: time(43_020))
        #expect(account.spans.map(\.state) == [.off])
    }

    /// A duty cycle has many intervals, and is no source that fails all day.
    @Test func windowsOfADutyCycle_joinNoFailures() {
        var account = radio(("listening", 0))
        for second in stride(from: 0, to: 36_000, by: 600) {
            record(&account, ("scheduled", second + 60), ("listening", second + 600))
            #expect(seal(&account, at: time(second + 620)).count == 2)
        }
        record(&account, ("gone", 36_005), ("listening", 36_010), ("gone", 36_040))
        record(&account, ("listening", 36_045))
        #expect(
            seal(&account, at: time(36_100)) == [
                "recorded 36000..36005", "failed 36005..36010", "recorded 36010..36040",
                "failed 36040..36045",
            ]
        )
    }

    @Test func suspend_isOff_butForWhatIsStored() {
        var radio = radio(("listening", 0), ("scheduled", 20), ("late", 80))
        radio.sleep(from: time(10), to: time(90), number: 3)
        record(&radio, ("listening", 95))
        #expect(
            seal(&radio, at: time(200))
                == ["recorded 0..10", "off 10..20", "scheduled_off 20..80", "failed 80..95"]
        )
        var audio = EffortAccount(isAudio: true)
        record(&audio, ("listening", 0))
        hear(&audio, (0, 6))
        audio.sleep(from: time(10), to: time(90), number: 3)
        hear(&audio, (6, 10), first: false)
        hear(&audio, (92, 94))
        record(&audio, ("off", 94))
        #expect(
            seal(&audio, at: time(200)) == ["recorded 0..10", "off 10..92", "recorded 92..94"]
        )
    }

    @Test func changesThatNobodyStores_areBoundedInMemory() {
        var account = EffortAccount(isAudio: false)
        for second in 0..<2000 { record(&account, (["listening", "off"][second % 2], second)) }
        #expect(account.spans.count <= EffortAccount.maximum)
        #expect(account.spans[0].state == .unknown)
        #expect(account.spans[0].from == time(0))
    }

    // MARK: Audio

    private func hear(_ account: inout EffortAccount, _ spans: (Int, Int)..., first: Bool = true) {
        for (index, span) in spans.enumerated() {
            account.hear(
                from: time(span.0),
                to: time(span.1),
                isContinued: index > 0 || !first,
                number: 7
            )
        }
    }

    @Test func audioIsRecordedWhereItIsStored() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("starting", 0), ("listening", 1))
        hear(&account, (2, 4), (4, 6), (6, 7))
        #expect(seal(&account, at: time(100)) == [])
        record(&account, ("unplugged", 8), ("starting", 9), ("listening", 19))
        hear(&account, (20, 22))
        // A hole of the disk, then a stop.
        hear(&account, (40, 42))
        record(&account, ("off", 43), ("listening", 60))
        hear(&account, (61, 63))
        #expect(
            seal(&account, at: time(100)) == [
                "recorded 2..7", "failed 7..20", "recorded 20..22", "failed 22..40",
                "recorded 40..42", "off 42..61",
            ]
        )
    }

    @Test func deviceThatIsSilentBeforeAStop_hasFailed() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("listening", 0))
        hear(&account, (0, 4))
        record(&account, ("off", 60), ("listening", 70))
        hear(&account, (71, 73))
        #expect(
            seal(&account, at: time(100)) == ["recorded 0..4", "failed 4..60", "off 60..71"]
        )
    }

    @Test func audioStoredAfterAFailureWasNoted_isRecorded() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("listening", 0))
        hear(&account, (0, 2))
        record(&account, ("muted", 1), ("listening", 9))
        hear(&account, (2, 4), (4, 10), first: false)
        #expect(account.spans.map(\.state) == [.recorded, .listening])
    }

    @Test func lossOfAudio_namesTheCauseOnly() {
        var account = EffortAccount(isAudio: true)
        record(&account, ("listening", 0))
        hear(&account, (0, 2))
        account.lose(from: time(0), to: time(8), "disk", number: 1)
        hear(&account, (10, 12))
        let intervals = account.seal(at: time(60), number: 1) {
            $0.stamp.wall.milliseconds
        }
        #expect(words(intervals) == ["recorded 0..2", "failed 2..10"])
        #expect(intervals.last?.reason == "disk")
    }

    // MARK: The process before

    @Test(arguments: ["listening", "gone", "scheduled"])
    func kill_isUnknownFromTheLastSignOfLife(_ last: String) {
        let before = radio(("listening", 0), ("off", 1), (last, 10))
        var account = EffortAccount(isAudio: false)
        account.follow(before, end: time(20))
        account.record(.starting, at: time(30, "b"), number: 1)
        account.record(.listening, at: time(31, "b"), number: 1)
        let sealed = seal(&account, at: time(90, "b"))
        #expect(sealed.count == 4)
        #expect(sealed.last == "unknown 20..b31")
        #expect(sealed[2].hasSuffix("10..20"))
    }

    @Test func orderlyStop_isOffUntilItListensAgain() {
        var account = EffortAccount(isAudio: false)
        account.follow(radio(("listening", 0), ("off", 10)), end: time(12))
        account.record(.listening, at: time(31, "b"), number: 1)
        #expect(seal(&account, at: time(90, "b")) == ["recorded 0..10", "off 10..b31"])
    }

    @Test func unreadableHeartbeat_makesOpenIntervalUnknown() {
        var account = EffortAccount(isAudio: false)
        account.follow(radio(("listening", 0)), end: nil)
        account.record(.failed("gone"), at: time(5, "b"), number: 1)
        account.record(.listening, at: time(31, "b"), number: 1)
        #expect(seal(&account, at: time(90, "b")) == ["unknown 0..b5", "failed b5..b31"])
    }

    /// The disk refused at the start: the database opens after the sources have begun.
    @Test func changesBeforeDatabaseOpens_followTheLastProcess() {
        var account = EffortAccount(isAudio: false)
        account.record(.listening, at: time(31, "b"), number: nil)
        account.follow(radio(("listening", 0)), end: time(4))
        #expect(seal(&account, at: time(90, "b")) == ["recorded 0..4", "unknown 4..b31"])
    }
}
