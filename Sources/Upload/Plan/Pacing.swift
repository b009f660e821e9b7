// When a sync may start and how many requests it may make, so that a fleet does not come back as one.
package import Host

/// Why a sync is wanted.
package enum SyncReason: Sendable, Equatable {
    /// The grid's tick.
    case tick
    /// The wait after a failure is over.
    case retry
    /// A person asked: not in the quiet hours alone.
    case asked
    /// The same, whatever it costs of the day's budget.
    case askedOverBudget
    /// An interface or an address changed: what failed before may have failed for want of it.
    case network
    /// There is another token.
    case token
}

extension SyncReason {
    var isAsked: Bool { self == .asked || self == .askedOverBudget }
}

/// Paces the syncs of one gateway; pure, so that the simulation of a fleet runs the same code.
///
/// A gateway that sees its server again after an outage first sends one request. The rest follows at its own
/// next tick, and what piled up goes in portions: a thousand gateways that lost their server together then ask
/// it less than twice as much as in normal running. A person who asks, and a link of the gateway's own that
/// comes back, are no such case: there everything goes at once.
package struct Pacing: Sendable {
    /// From so many failures in a row it is an outage, which the whole fleet may have seen.
    static let outage = 2
    /// Requests of a sync while the backlog of an outage is drained.
    static let portion = 6

    private let interval: Duration
    /// The rest of a backlog follows at the next tick, which is each gateway's own, or in one to two times this
    /// where the grid is wider.
    private let pause: Duration
    private var backoff = Backoff()
    /// When the rest of the backlog is to be sent; nil when nothing is left.
    private(set) var restAt: BootInstant?
    private var isRecovering = false

    /// `interval`: of the grid that ticks.
    package init(interval: Duration = .seconds(300)) {
        self.interval = interval
        pause = min(interval, .seconds(3600))
    }

    /// A sync comes by itself then; nil when only the grid is waited for.
    package var until: BootInstant? { notBefore ?? restAt }

    /// No tick of the grid leads to a sync before this; nil when each does.
    package var notBefore: BootInstant? { backoff.until }

    /// The last sync failed: another failure ends the next one, whatever stream it is of.
    package var isFailing: Bool { backoff.failures > 0 }

    /// How many requests a sync that begins now may make; nil: any number, 0: none.
    package mutating func begin(_ reason: SyncReason, at now: BootInstant) -> Int? {
        switch reason {
        case .asked, .askedOverBudget, .token:
            break
        case .network:
            // A server that said when to come back is asked then, whichever network leads there.
            guard !backoff.isOrdered || backoff.allows(now) else { return 0 }
            isRecovering = false
        case .tick, .retry:
            guard backoff.allows(now) else { return 0 }
        }
        backoff.lift()
        restAt = nil
        guard reason == .tick || reason == .retry else { return nil }
        if backoff.failures >= Self.outage || backoff.wasHeldOff { return 1 }
        return isRecovering ? Self.portion : nil
    }

    /// The sync failed; `after` is what the server asked for, `random` a number in 0..<1.
    package mutating func failed(at now: BootInstant, after: Duration?, random: Double) {
        backoff.failed(at: now, after: after, random: random)
    }

    /// The sync was cut at its limit, and everything it sent was taken.
    package mutating func cut(at now: BootInstant, random: Double) {
        backoff.succeeded()
        isRecovering = true
        restAt = now + pause + .milliseconds(Int64(pause.inSeconds * 1000 * random))
    }

    /// Everything was sent.
    package mutating func succeeded() { self = Pacing(interval: interval) }
}
