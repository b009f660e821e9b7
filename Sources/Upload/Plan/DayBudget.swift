// The daily byte budget (`upload.daily_budget`): how much each stream may send now.
package import Host
import JSON
package import Queue
import Synchronization

/// The day's account, one per process, so a restarted uploader continues with it.
///
/// Stored as a memo of the queue: it survives restarts and kills, and costs a commit only before a
/// large request.
package final class DayBudget: Sendable {
    /// Nothing is sent with less left: header and answer would be most of the request.
    static let least: Int64 = 2000
    private static let memo = "budget"

    /// The budget's figures, as `status` shows them.
    package struct Figures: Sendable, Equatable {
        /// Bytes on the wire that count against the budget.
        package var spent: Int64
        /// The time until the next day begins.
        package var rest: Duration
    }

    private struct State: Sendable {
        var day: BudgetDay?
        var seenAt: BootInstant
    }

    private let queue: Queue
    private let clock: any HostClock
    private let state: Mutex<State>

    package init(_ queue: Queue, clock: any HostClock) {
        (self.queue, self.clock) = (queue, clock)
        state = Mutex(State(day: nil, seenAt: clock.now()))
    }

    /// Deletes the stored day when no budget is configured, because nothing is counted then.
    func forget() {
        state.withLock { $0.day = nil }
        if queue.remembered(Self.memo) != nil { queue.remember(Self.memo, "") }
    }

    /// Starts the first day if the database has none stored.
    func open() {
        guard update({ $0 == nil }) else { return }
        let spent = spentBefore
        update { $0 = $0 ?? BudgetDay(spent: spent) }
    }

    /// The bytes that the traffic counters show for today.
    private var spentBefore: Int64 {
        let today = queue.today
        return (try? queue.traffic())?.first { $0.day == today }?.traffic.total ?? 0
    }

    // MARK: Queries

    /// The current figures; nil if nothing is known yet.
    package var figures: Figures? {
        update { day in day.map { Figures(spent: $0.spent, rest: $0.rest(now)) } }
    }

    /// Returns the bytes that a stream may send now; nothing is sent during `tail` at the end of
    /// the day.
    func room(of budget: Int64, _ share: BudgetDay.Share, tail: Duration) -> Int64 {
        update { day in
            let left = budget - (day?.spent ?? 0)
            guard share == .sound, let day else { return left }
            return left - day.reserve(of: budget, for: day.rest(now) - tail)
        }
    }

    /// Returns the bytes that audio may use in a whole day; a longer batch is never sent in one
    /// piece.
    func soundOfDay(of budget: Int64) -> Int64 {
        update { max(Self.least, budget - ($0?.usual ?? budget / 2)) }
    }

    /// No oversized record has been sent beside the budget today.
    var mayGoBeside: Bool { update { $0?.mayGoBeside ?? true } }

    // MARK: Requests

    /// Reserves the cost of a request that begins.
    func begin(_ request: BudgetDay.Request) { update { $0?.begin(request) } }

    /// Replaces the reservation by the actual cost of the request.
    func end(_ spent: BudgetDay.Request) { update { $0?.end(spent) } }

    /// Counts bytes sent outside syncs, such as an enrolment's.
    package func spend(_ traffic: Traffic) {
        update { $0?.add(BudgetDay.Request(share: .small, bytes: traffic.total)) }
    }

    // MARK: The account

    private var now: BudgetClock {
        let stamp = clock.stamp()
        guard let right = queue.rightTime(at: stamp) else {
            return BudgetClock(stamp: stamp, isSynced: false)
        }
        return BudgetClock(stamp: Stamp(boot: stamp.boot, wall: right), isSynced: true)
    }

    /// Advances the account to now, applies `change` and stores the result.
    private func update<Value>(_ change: (inout BudgetDay?) -> Value) -> Value {
        state.withLock { state in
            let (kept, moment) = (state.day, now)
            state.day = state.day ?? read(queue.remembered(Self.memo))
            state.day?.pass(moment.stamp.boot - state.seenAt, moment)
            state.seenAt = moment.stamp.boot
            let value = change(&state.day)
            if let day = state.day, day != kept {
                queue.remember(Self.memo, String(decoding: encodedJSON(day), as: UTF8.self))
            }
            return value
        }
    }

    private func read(_ memo: String?) -> BudgetDay? {
        let day = memo.flatMap {
            try? JSONInput.decode(BudgetDay.self, from: Array($0.utf8), snakeCase: true)
        }
        guard var day, day.isPlausible else { return nil }
        day.settle()
        return day
    }
}
