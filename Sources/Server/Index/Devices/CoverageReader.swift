// Reads from the index what a stream recorded, what of it is stored, and where the rest is.
import Host
import SQLite
import ServerBase

/// Reads the days of one device's streams.
struct CoverageReader {
    let reader: FleetReader
    let device: DeviceView
    /// In order.
    let range: [Day]
    let now: Int64

    /// Milliseconds after midnight in which the effort of a day may come.
    private static let late: Int64 = 3_600_000
    private static let states = IndexedEffort.states.joined(separator: ", ")
    /// Of several files of effort, the worst comes last.
    private static let known = """
        SELECT date, NULL, worst, reason, until, min(records, 1000000000000), \(states)
        FROM effort WHERE device=?1 AND source=?2 AND date<=?5
        AND date >= coalesce((SELECT max(date) FROM effort WHERE device=?1 AND source=?2 AND date<?4), ?4)
        UNION ALL SELECT date, records, 0, '', 0, 0, 0, 0, 0, 0, 0 FROM files WHERE device=?1 AND stream=?3 AND date>=?4 AND date<=?5
        UNION ALL SELECT min(date), 0, -1, '', 0, 0, 0, 0, 0, 0, 0 FROM files WHERE device=?1 AND stream=?3 ORDER BY 1, 3
        """

    /// Returns the days of a stream from its first one on; `source`: "" if it is of none.
    func days(of source: String, _ stream: String) throws -> [String: DayCoverage] {
        let (found, begin) = try known(source, stream)
        let last = found.values.filter(\.hasEffort).map(\.day.name).max() ?? ""
        var before = found.values.filter { $0.day.name < range[0].name }.max {
            $0.day.start < $1.day.start
        }
        var days: [String: DayCoverage] = [:]
        // Nothing is expected before the first effort: a gateway of an older version sends none.
        var hasEffort = false
        for day in range {
            // Nothing may have come yet today.
            guard found[day.name] != nil || before != nil && day.end <= now else { continue }
            var own = found[day.name] ?? DayCoverage(day, isOfSource: !source.isEmpty)
            let isOpen = day.name >= last && day.end > now - Self.late
            hasEffort = hasEffort || before?.hasEffort ?? false
            own.fill(after: before, isKnown: !hasEffort || isOpen)
            (days[day.name], before) = (own, own)
        }
        try explain(&days, [stream, source], since: begin)
        return days
    }

    /// Returns the days with effort or records, with the last one that has effort and the first one
    /// that has records, also before the range; and that first one.
    private func known(_ source: String, _ stream: String) throws -> ([String: DayCoverage], String)
    {
        let row = try reader.database.prepare(
            Self.known,
            device.id,
            source,
            stream,
            range[0].name,
            range[range.count - 1].name
        )
        var (days, begin, place): ([String: DayCoverage], String?, Int) = ([:], nil, 0)
        while try row.step() {
            let name = row.text(0)
            while place < range.count - 1, range[place].name < name { place += 1 }
            guard let day = range[place].name == name ? range[place] : Day(name) else { continue }
            if !row.isNull(1) { begin = begin ?? day.name }
            days.change(day.name, from: DayCoverage(day, isOfSource: !source.isEmpty)) {
                $0.stored += row.required(1)
                $0.made += row.required(5)
                if row.required(2) > 0 { $0.reason = row.text(3) }
                $0.until = max($0.until, row.required(4))
                for (place, length) in $0.lengths.enumerated() {
                    let more = min(row.required(Int32(6 + place)), Day.milliseconds)
                    $0.lengths[place] = min(length + more, Day.milliseconds)
                }
            }
        }
        return (days, begin ?? "9")
    }

    // MARK: Missing records

    /// Finds out why records are not at the server; days before `begin` may have been deleted here.
    private func explain(
        _ days: inout [String: DayCoverage],
        _ names: [String],
        since begin: String
    ) throws {
        // Days without effort, such as today, count no records: there an event alone says it.
        let short = days.values.filter {
            $0.shortage > 0 || !$0.hasEffort && $0.isOfSource && $0.stored > 0
        }.map(\.day)
        guard let first = short.map(\.start).min() else { return }
        let losses = try losses(of: names, since: first)
        for day in short {
            let own = losses.filter { $0.from < day.end && $0.to >= day.start }
            if own.contains(where: \.isRemoval) {
                days[day.name]?.absence = .lost
            } else if days[day.name]?.hasEffort ?? false {
                let missing: DayCoverage.State? = day.name >= begin ? .missing : nil
                days[day.name]?.absence =
                    isPending(day) || isHeld(day, of: names)
                    ? .waiting : own.isEmpty ? missing : .lost
            }
        }
    }

    /// Returns whether the device may still hold records of a day.
    private func isPending(_ day: Day) -> Bool {
        if device.lastSeen ?? .min < day.end { return true }
        guard let health = device.facts.health, health.pending ?? 0 > 0 else { return false }
        return health.oldestPending.map { $0 < day.end } ?? false
    }

    /// Returns whether the device holds sound of a day, for nobody has asked for it.
    private func isHeld(_ day: Day, of names: [String]) -> Bool {
        names.contains("audio") && device.facts.health?.held?.overlaps(day.start...day.end) == true
    }

    /// Returns the losses of a stream that events report, which may come weeks after it recorded.
    private func losses(of names: [String], since time: Int64) throws -> [(
        from: Int64, to: Int64, isRemoval: Bool
    )] {
        try reader.database.rows(
            """
            SELECT time, kind, source, detail FROM events WHERE device=? AND time>=?
            AND kind IN \(FleetReader.losing) ORDER BY kind='gap', time DESC LIMIT 2000
            """,
            device.id,
            time
        ) { event in
            let detail = FlatRecord(event.text(3))
            guard names.contains(detail.text("stream") ?? event.text(2)),
                detail.text("state") != "off"
            else { return nil }
            let ends = ["from", "to"].map { detail.text($0).flatMap { WallTime(rfc3339: $0) } }
            let from = ends[0]?.milliseconds ?? event.required(0)
            // Records of other gaps were never stored on the device.
            let isRemoval = event.text(1) != "gap" || detail.text("kind") == "corrupt"
            return (from, ends[1]?.milliseconds ?? from, isRemoval)
        }
    }
}

extension DayCoverage {
    /// Adds the rest of the day, which no interval covers; `isKnown`: nothing is missing, because no
    /// effort has come yet, or the last interval may not be sent yet.
    ///
    /// A time off of more than a month is one interval, on its first day.
    fileprivate mutating func fill(after before: Self?, isKnown: Bool) {
        guard let before else { return }
        let rest = max(0, Day.milliseconds - lengths.reduce(0, +))
        let off = max(0, min(before.until - day.start, rest))
        if off > 0, reason.isEmpty { reason = before.reason }
        lengths[3] += off
        if !isKnown { lengths[4] += rest - off }
        until = max(until, before.until)
    }
}
