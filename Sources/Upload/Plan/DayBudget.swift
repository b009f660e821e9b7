// The budget of bytes a day (`upload.daily_budget`): who may send how much now.
package import Host
import JSON
package import Queue
import Synchronization

/// The account of the day, one for a program, so that an uploader that is started anew goes on with it.
///
/// It is a memo of the queue: it outlives restarts and kills, and costs a commit only before a large request.
package final class DayBudget: Sendable {
    /// With less left nothing is sent: header and answer of a request would be most of it.
    static let least: Int64 = 2000
    private static let memo = "budget"

    /// As `status` tells it.
    package struct Figures: Sendable, Equatable {
        /// Bytes on the wire, of the budget.
        package var spent: Int64
        /// Until another day begins.
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

    /// Without a budget nothing is counted: what is kept of an earlier one is of no day any more.
    func forget() {
        state.withLock { $0.day = nil }
        if queue.remembered(Self.memo) != nil { queue.remember(Self.memo, "") }
    }

    /// There is a database: if it knows of no day, this is the first.
    func open() {
        guard update({ $0 == nil }) else { return }
        let spent = spentBefore
        update { $0 = $0 ?? BudgetDay(spent: spent) }
    }

    /// What the ledger of bytes has for today.
    private var spentBefore: Int64 {
        let today = queue.today
        return (try? queue.traffic())?.first { $0.day == today }?.traffic.total ?? 0
    }

    // MARK: Questions

    /// nil where nothing is known yet.
    package var figures: Figures? {
        update { day in day.map { Figures(spent: $0.spent, rest: $0.rest(now)) } }
    }

    /// What a stream may spend now; `tail`: at the end of the day nothing will be sent for so long.
    func room(of budget: Int64, _ share: BudgetDay.Share, tail: Duration) -> Int64 {
        update { day in
            let left = budget - (day?.spent ?? 0)
            guard share == .sound, let day else { return left }
            return left - day.reserve(of: budget, for: day.rest(now) - tail)
        }
    }

    /// What sound may spend in a whole day: a batch beyond it is never sent as it is.
    func soundOfDay(of budget: Int64) -> Int64 {
        update { max(Self.least, budget - ($0?.usual ?? budget / 2)) }
    }

    /// No record beside the budget has gone today.
    var mayGoBeside: Bool { update { $0?.mayGoBeside ?? true } }

    // MARK: Requests

    /// A request begins, which will cost so much.
    func begin(_ request: BudgetDay.Request) { update { $0?.begin(request) } }

    /// It has ended.
    func end(_ spent: BudgetDay.Request) { update { $0?.end(spent) } }

    /// Bytes that went beside syncs, such as those of an enrolment.
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

    /// Brings the account up to now, and keeps what became of it.
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
