import Host
import Testing

@testable import Upload

/// When a budget day ends, whatever the clock shows.
@Suite struct BudgetDayTests {
    private static let day: Int64 = 20_000

    private func clock(_ day: Double?) -> BudgetClock {
        let wall = Int64((day ?? 0) * 86_400_000)
        let stamp = Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: wall))
        return BudgetClock(stamp: stamp, isSynced: day != nil)
    }

    /// A day, some hours old by its own count, with a kilobyte spent.
    private func spent(_ day: Double?, hours: Int = 0) -> BudgetDay {
        var account = BudgetDay(spent: 1000)
        account.pass(.zero, clock(day))
        account.pass(.seconds(hours * 3600), clock(day))
        return account
    }

    private func after(_ account: BudgetDay, hours: Int, _ day: Double?) -> BudgetDay {
        var account = account
        account.pass(.seconds(hours * 3600), clock(day))
        return account
    }

    @Test func midnight_beginsAnother() {
        let account = spent(20_000.5)
        #expect(after(account, hours: 11, 20_000.99).spent == 1000)
        #expect(after(account, hours: 12, 20_001).spent == 0)
        #expect(account.rest(clock(20_000.75)) == .seconds(21_600))
    }

    /// The device was off over midnight.
    @Test func daysThatWereMissed_areOne() {
        #expect(after(spent(20_000.5), hours: 0, 20_009.2).spent == 0)
    }

    @Test func clockThatGoesBackAndForth_beginsNone() {
        var account = after(spent(20_000.5), hours: 0, 19_000.5)
        account = after(account, hours: 1, 20_000.6)
        account = after(account, hours: 1, 19_999.9)
        #expect(after(account, hours: 1, 20_000.7).spent == 1000)
    }

    @Test func clockThatWasYearsAhead_holdsUpForADayAtMost() {
        var account = spent(25_000.5)
        account = after(account, hours: 23, 20_001.4)
        #expect(account.spent == 1000)
        #expect(account.rest(clock(20_001.4)) == .seconds(3600))
        account = after(account, hours: 1, 20_001.45)
        #expect(account.spent == 0)
        // From there on by the date.
        #expect(account.day == 20_001)
    }

    @Test func unknownClock_beginsADayAfter24RunningHours() {
        var account = spent(nil)
        for _ in 0..<23 { account = after(account, hours: 1, nil) }
        #expect(account.spent == 1000)
        #expect(after(account, hours: 1, nil).spent == 0)
    }

    /// Learning the date does not begin a new day; nor does a date that was counted already.
    @Test func firstKnownDate_isOfTheDayThatIs() {
        #expect(after(spent(nil), hours: 1, 20_000.5).spent == 1000)
        var account = after(spent(20_000.5), hours: 24, nil)
        #expect(account.spent == 0)
        account.add(.init(share: .small, bytes: 7))
        #expect(after(account, hours: 1, 20_001.6).spent == 7)
        #expect(after(account, hours: 1, 20_002.1).spent == 0)
    }

    @Test func reserve_isWhatTheOthersNeedForTheRestOfTheDay() {
        var account = BudgetDay(spent: 0)
        account.pass(.zero, clock(20_000))
        // A first day has no history.
        #expect(account.reserve(of: 1000, for: .seconds(43_200)) == 250)
        account.add(.init(share: .small, bytes: 600))
        account.add(.init(share: .sound, bytes: 100_000))
        account.pass(.seconds(86_400), clock(20_001))
        #expect(account.usual == 600)
        #expect(account.reserve(of: 1000, for: .seconds(86_400)) == 600)
        #expect(account.reserve(of: 1000, for: .seconds(-1)) == 0)
        // A busy morning predicts a busy day.
        account.add(.init(share: .small, bytes: 500))
        account.pass(.seconds(21_600), clock(20_001.25))
        #expect(account.reserve(of: 1000, for: .seconds(64_800)) == 1500)
        // A quiet day decays slowly, and one of an hour says nothing.
        account.pass(.seconds(64_800), clock(20_002))
        account.pass(.seconds(86_400), clock(20_003))
        #expect(account.usual == 455)
        account.pass(.seconds(3600), clock(20_004.1))
        #expect(account.usual == 455)
    }

    /// Traffic before anybody counted may have been audio: it says nothing about the need of the
    /// others.
    @Test func whatWentBefore_reservesNothing() {
        var account = BudgetDay(spent: 200_000)
        account.pass(.zero, clock(20_000.5))
        #expect(account.spent == 200_000)
        #expect(account.reserve(of: 1000, for: .seconds(86_400)) == 500)
        account.pass(.seconds(43_200), clock(20_001))
        #expect(account.usual == 0)
    }

    /// It had run for some hours when its date became known: midnight still ends the day, and each
    /// one after it.
    @Test func dayThatBeganWithoutADate_endsAtMidnight_too() {
        var account = after(spent(nil), hours: 20, 20_000.25)
        account = after(account, hours: 4, 20_000.45)
        #expect(account.spent == 1000 && account.day == 20_000)
        account = after(account, hours: 13, 20_000.99)
        #expect(account.spent == 1000)
        #expect(account.rest(clock(20_000.75)) == .seconds(21_600))
        account = after(account, hours: 1, 20_001)
        #expect(account.spent == 0 && account.day == 20_001)
        // A clock that stands still does not block it forever.
        account.add(.init(share: .small, bytes: 7))
        account = after(account, hours: 48, 20_001)
        #expect(account.spent == 0)
    }

    @Test func requestThatDidNotEnd_countsWhole() {
        var account = spent(20_000.5)
        account.begin(.init(share: .sound, bytes: 5000))
        #expect(account.spent == 6000)
        var killed = account
        killed.settle()
        #expect(killed.spent == 6000)
        account.end(.init(share: .sound, bytes: 300))
        #expect(account.spent == 1300)
        account.begin(.init(share: .beside, bytes: 9000))
        #expect(account.mayGoBeside)
        account.settle()
        #expect(account.spent == 1300 && !account.mayGoBeside)
    }
}
