// Which of the recorded losses are of the last 24 hours.
package import Host
import JSON
import Records

/// The totals of the losses at hourly times of the last day, stored in the queue's database.
///
/// The totals that `status` reports only grow: the losses of a day are today's totals less those of
/// a day ago.
package struct LossHistory: Codable, Sendable, Equatable {
    /// The name under which the queue stores this value.
    package static let memo = "loss totals"

    /// The totals at one point in time.
    private struct Totals: Codable, Sendable, Equatable {
        /// The boot, and the milliseconds since it began.
        var boot: String
        var uptime: Int64
        /// nil if the clock was not known to be right.
        var at: WallTime?
        /// By stream and kind.
        var records: [String: Int]

        /// Returns its age in ms, by the boot's clock if it is of this boot; nil if that is unknown.
        func age(_ bootID: String, _ now: Stamp) -> Int64? {
            boot == bootID
                ? now.boot.milliseconds &- uptime
                : at.map { now.wall.milliseconds &- $0.milliseconds }
        }
    }

    private static let hour: Int64 = 3_600_000
    private static let day: Int64 = 24 * hour
    /// More than a day's; after it, clocks that go wrong at each boot cannot make it grow.
    private static let limit = 48

    private var totals: [Totals] = []

    /// Parses a stored `text`; empty for any other text.
    package init(text: String?) {
        let read = text.flatMap { try? JSONInput.decode(Self.self, from: Array($0.utf8)) }
        self = read ?? Self()
    }

    private init() {}

    package var text: String { String(decoding: encodedJSON(self), as: UTF8.self) }

    /// Returns the records lost in the last 24 hours, by stream, and remembers the totals each hour.
    ///
    /// `losses` are those of `status`; `now` has the right time if `isRight`. A loss that cannot be
    /// dated counts.
    package mutating func ofLastDay(
        _ losses: [StatusReport.Loss],
        _ bootID: String,
        at now: Stamp,
        isRight: Bool
    ) -> [String: Int] {
        totals.removeAll { $0.age(bootID, now) == nil }
        let base = totals.last { $0.age(bootID, now) ?? 0 >= Self.day }
        if let base, let index = totals.firstIndex(of: base) { totals.removeFirst(index) }
        var lost: [String: Int] = [:]
        for loss in losses where loss.kind != LossKind.unmarked.rawValue {
            let before = base?.records[loss.name] ?? 0
            // Without totals of a day ago, the ledger at least says when the last record was lost.
            let isOld = base == nil && now.wall.milliseconds &- loss.to.milliseconds >= Self.day
            if loss.records > before, !isOld {
                lost[loss.stream, default: 0] += loss.records - before
            }
        }
        remember(losses, bootID, now, isRight: isRight)
        return lost
    }

    private mutating func remember(
        _ losses: [StatusReport.Loss],
        _ bootID: String,
        _ now: Stamp,
        isRight: Bool
    ) {
        let age = totals.last?.age(bootID, now)
        // Without a loss there is nothing to remember; a clock that went back begins a new hour.
        guard !losses.isEmpty || age != nil, !(0..<Self.hour).contains(age ?? .max) else { return }
        let new = Totals(
            boot: bootID,
            uptime: now.boot.milliseconds,
            at: isRight ? now.wall : nil,
            records: Dictionary(losses.map { ($0.name, $0.records) }, uniquingKeysWith: +)
        )
        totals = (totals + [new]).suffix(Self.limit)
    }
}

extension StatusReport.Loss {
    fileprivate var name: String { "\(stream) \(kind)" }
}
