// Indexes the effort in one record file: how long each source was in each state on that day.
import Host
import SQLite
import ServerBase

/// Adds up the intervals of a file's effort records (waypost-protocol(7)) by source.
///
/// Whole milliseconds, sums and maxima only, so that the rows do not depend on how the file was
/// divided into parts.
struct IndexedEffort {
    /// The columns of the states' lengths, in their order.
    static let states = ["recorded", "scheduled_off", "failed", "off", "unknown"]
    /// Other sources would let a device fill the index with names.
    private static let sources: Set<String> = ["audio", "beacons", "location"]
    private static let (longestReason, maxRecords) = (200, Int64(1_000_000_000))

    private struct Sum {
        /// Milliseconds in each state, in the order of `states`.
        var lengths = [Int64](repeating: 0, count: states.count)
        var records: Int64 = 0
        /// The longest interval without recording; failures before times off, whatever their length.
        var worst: (rank: Int64, reason: String) = (0, "")
        /// When a time off ends that is longer than this day; 0 without one.
        var until: Int64 = 0
    }

    private let day: Day?
    private var sums: [String: Sum] = [:]

    init(date: String) { day = Day(date) }

    /// Adds a record, unless it is not an interval, or nobody knows when that was.
    mutating func receive(_ line: RecordLine) {
        guard line["from"] != nil, let day, let from = line.time("from"), let to = line.time("to"),
            let source = line.text("source"), Self.sources.contains(source), line.isDated,
            let state = line.text("state").flatMap({ Self.states.firstIndex(of: $0) })
        else { return }
        // A gateway ends an interval at midnight, unless it was off for more than a month.
        let length = min(to, day.end) - max(from, day.start)
        guard length > 0 else { return }
        invariant(length <= Day.milliseconds, "an interval counts for a day at most")
        sums.change(source, from: Sum()) { sum in
            sum.lengths[state] += length
            sum.records += min(max(line.integer("records") ?? 0, 0), Self.maxRecords)
            if state == 3, to > day.end { sum.until = max(sum.until, to) }
            guard state > 1 else { return }
            let reason = printable(line.text("reason") ?? "", limit: Self.longestReason)
            let rank = length + (state == 2 ? Day.milliseconds : 0)
            if (rank, reason) > sum.worst { sum.worst = (rank, reason) }
        }
    }

    /// Writes the changed rows.
    func finish(_ device: String, _ file: Int64, _ database: borrowing Connection) throws {
        let sums = Self.states.map { "\($0)=\($0)+excluded.\($0)" }.joined(separator: ", ")
        for (source, sum) in self.sums {
            try database.run(
                """
                INSERT INTO effort VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(device, source, date, file) DO UPDATE SET
                reason=iif((excluded.worst, excluded.reason) > (worst, reason), excluded.reason, reason),
                worst=max(worst, excluded.worst), until=max(until, excluded.until), records=records+excluded.records, \(sums)
                """,
                row: [
                    device, source, day?.name, file, sum.records, sum.worst.rank, sum.worst.reason,
                    sum.until,
                ] + sum.lengths
            )
        }
    }
}
