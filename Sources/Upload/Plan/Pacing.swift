// Decides when a sync may start and how many requests it may make, so that a fleet does not return
// at once.
package import Host

/// The reason for a sync.
package enum SyncReason: Sendable, Equatable {
    /// A tick of the upload interval.
    case tick
    /// The wait after a failure is over.
    case retry
    /// A person asked: runs in quiet hours too.
    case asked
    /// A person asked, and the daily budget is ignored.
    case askedOverBudget
    /// An interface or an address changed: earlier failures may have been for lack of it.
    case network
    /// There is a new token.
    case token
}

extension SyncReason {
    var isAsked: Bool { self == .asked || self == .askedOverBudget }
}

/// Paces the syncs of one gateway; a pure value, so the fleet simulation runs the same code.
///
/// After an outage a gateway first sends one request. The rest follows at its own next tick, and
/// the backlog is sent in portions: a thousand gateways that lost their server together then send
/// it less than twice the usual load. This does not apply when a person asks or the gateway's own
/// link returns: then everything is sent at once.
package struct Pacing: Sendable {
    /// The number of failures in a row that count as an outage, which the whole fleet may have
    /// seen.
    static let outage = 2
    /// The number of requests per sync while the backlog of an outage is drained.
    static let portion = 6

    /// The longest waits after failures in a row, in seconds (waypost-protocol(7), ANSWERS).
    ///
    /// Their full jitter keeps a fleet that lost its server together from returning together.
    private static let waits = [30.0, 60, 120, 240, 300]

    private let interval: Duration
    /// The wait before the rest of a backlog: one to two times this, or until the next tick, which
    /// differs between gateways, if that is sooner.
    private let pause: Duration
    /// Failures in a row.
    private var failures = 0
    /// Ticks before this time do not start a sync; nil if every tick does.
    package private(set) var notBefore: BootInstant?
    /// The server asked for the wait (`Retry-After`).
    private var isOrdered = false
    /// The server has asked for a wait of 30 s or more since the last success.
    private var wasHeldOff = false
    /// When the rest of the backlog is sent; nil if nothing is left.
    private(set) var restAt: BootInstant?
    private var isRecovering = false

    /// Creates the pacing for an upload interval.
    package init(interval: Duration = .seconds(300)) {
        self.interval = interval
        pause = min(interval, .seconds(3600))
    }

    /// When the next sync starts by itself; nil if only a tick starts one.
    package var until: BootInstant? { notBefore ?? restAt }

    /// The last sync failed: any failure ends the next one, whatever its stream.
    package var isFailing: Bool { failures > 0 }

    /// Returns the request limit of a sync that begins now; nil for none, 0 if it must not begin.
    package mutating func begin(_ reason: SyncReason, at now: BootInstant) -> Int? {
        let isOver = notBefore.map { now >= $0 } ?? true
        switch reason {
        case .asked, .askedOverBudget, .token:
            break
        case .network:
            // A server that said when to come back is not asked earlier, whichever network leads to
            // it.
            guard !isOrdered || isOver else { return 0 }
            isRecovering = false
        case .tick, .retry:
            guard isOver else { return 0 }
        }
        // Earlier failures still count.
        (notBefore, isOrdered, restAt) = (nil, false, nil)
        guard reason == .tick || reason == .retry else { return nil }
        if failures >= Self.outage || wasHeldOff { return 1 }
        return isRecovering ? Self.portion : nil
    }

    /// Schedules the retry of a failed sync; `after` is the wait the server asked for, `random` a
    /// number in 0..<1.
    ///
    /// Waits as long as the server asked for plus a random time (up to as long again, between one
    /// and five minutes): the server may have given all gateways the same time.
    package mutating func failed(at now: BootInstant, after: Duration?, random: Double) {
        let limit = Self.waits[min(failures, Self.waits.count - 1)]
        failures += 1
        isOrdered = after.map { $0 > .zero } ?? false
        if let after, after.inSeconds >= Self.waits[0] { wasHeldOff = true }
        let longest = Self.waits[Self.waits.count - 1]
        let jitter = after.map { $0 > .zero ? min(max(60, $0.inSeconds * 2), longest) : 0 } ?? limit
        invariant(jitter >= 0 && (0..<1).contains(random), "a fleet spreads its return")
        notBefore = now + (after ?? .zero) + .milliseconds(Int64(jitter * 1000 * random))
    }

    /// Schedules the rest after a sync that reached its limit and whose requests all succeeded.
    package mutating func cut(at now: BootInstant, random: Double) {
        succeeded()
        isRecovering = true
        restAt = now + pause + .milliseconds(Int64(pause.inSeconds * 1000 * random))
        invariant(restAt.map { $0 >= now } ?? false, "the rest of a backlog is sent later")
    }

    /// Resets the pacing: everything was sent.
    package mutating func succeeded() { self = Pacing(interval: interval) }
}
