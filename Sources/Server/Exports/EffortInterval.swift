// When a source was listening, from the records of `waypost_effort`.
import Host
import ServerBase

/// An interval of a source of a device.
struct EffortInterval {
    var source: String
    var state: String
    var reason: String
    /// Milliseconds since 1970.
    var from: Int64
    var to: Int64

    /// Nil if the record is not an interval, or nobody knows when it began or ended.
    init?(_ record: RecordLine) {
        guard let source = record.text("source"), let state = record.text("state"),
            let from = record.time("from"), let to = record.time("to"), from < to,
            // So the server has checked that it does not lie in the future.
            from == record.time("timestamp"), record.isDated
        else { return nil }
        (self.source, self.state, self.from, self.to) = (source, state, from, to)
        reason = record.text("reason") ?? ""
    }

    /// True if nobody planned that it did not listen.
    var isFailure: Bool { ["failed", "off", "unknown"].contains(state) }

    /// True if the device was at work; such an interval ends at UTC midnight.
    var isDeployed: Bool {
        ["recorded", "failed", "scheduled_off"].contains(state) && to - from <= Day.milliseconds
    }
}

extension DeviceRecords {
    /// Returns the intervals that reach into the scope's range, in order.
    func effort(_ scope: ExportScope) throws -> [EffortInterval] {
        var intervals: [EffortInterval] = []
        var ids: Set<String> = []
        // One that began long before may end in the range.
        let last = scope.until.map { String($0.rfc3339.prefix(10)) }
        try forEach(.effort, on: { date in last.map { date <= $0 } ?? true }) { record, _ in
            guard let interval = EffortInterval(record), let id = record.identity?.id,
                scope.since.map({ interval.to > $0.milliseconds }) ?? true,
                scope.until.map({ interval.from < $0.milliseconds }) ?? true,
                ids.insert(id).inserted
            else { return }
            intervals.append(interval)
        }
        return intervals.sorted { ($0.from, $0.source) < ($1.from, $1.source) }
    }
}
