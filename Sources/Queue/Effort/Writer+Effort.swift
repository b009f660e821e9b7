// Stores effort records, and finds where the accounts of an earlier process end.
import Host
import Records
import SQLite

extension Writer {
    /// Returns the next number of a stream.
    func next(of stream: Stream) -> Int64 { memory[Partition(stream)].next }

    /// Returns a time in UTC, in ms; nil if the clock of its boot was never set.
    func wall(_ time: EffortTime) -> Int64? {
        let row = time.boot == settings.bootID ? boot : (try? boot(named: time.boot)) ?? 0
        let (wall, quality) = clockMap.resolve(time.stamp, boot: row)
        return quality == .unsynced ? nil : wall.milliseconds
    }

    /// Inserts the boots of intervals that this database does not know, before all others.
    ///
    /// It may be new, and the clock map forgets boots without records.
    func insert(bootsOf intervals: [SealedSpan]) throws {
        let names = intervals.flatMap { [$0.from.boot, $0.to.boot] }
            .filter { $0 != settings.bootID }
        guard !names.isEmpty else { return }
        let boots = names.enumerated().map { (Int64($0), $1) }
        try insert(olderBoots: Dictionary(uniqueKeysWithValues: boots))
    }

    func insert(_ interval: SealedSpan, of source: Stream) throws {
        func time(_ time: EffortTime) throws -> BootStamp {
            BootStamp(
                boot: time.boot == settings.bootID ? boot : try boot(named: time.boot),
                time.stamp
            )
        }
        let effort = Effort(
            stamp: clock.stamp(),
            source: source.name,
            state: interval.state,
            reason: interval.reason,
            from: try time(interval.from),
            to: try time(interval.to),
            records: interval.records
        )
        try insert(PlainRow(effort))
    }

    /// Reads the accounts of the process before this one; nil if there are none.
    func effortBefore() throws -> InheritedEffort? {
        guard let text = try memos()[EffortBook.memo] else { return nil }
        let names = try bootNames(connection)
        let end = try streams.kinds.compactMap { try newestTime(in: $0.table, connection, names) }
        return InheritedEffort(
            text: text,
            end: latest(end.map { ($0.row, $0.time) }),
            endOfAudio: try newestAudio(connection, names)
        )
    }
}

extension Reader {
    /// Reads the accounts in a quarantined database, as far as it is readable.
    func inheritedEffort(_ patience: Patience) throws -> InheritedEffort? {
        let text = try patience.read {
            let row = try query("SELECT value FROM memos WHERE name='\(EffortBook.memo)'")
            return try row.step() ? row.text(0) : nil
        }
        guard let text = text ?? nil else { return nil }
        let names = try patience.read { try bootNames(connection) } ?? [:]
        let tables = StreamList.builtIn.map(\.table)
        let end = try tables.compactMap { table in
            try patience.read { try newestTime(in: table, connection, names) } ?? nil
        }
        let sound = try patience.read { try newestAudio(connection, names) } ?? nil
        return InheritedEffort(
            text: text,
            end: latest(end.map { ($0.row, $0.time) }),
            endOfAudio: sound
        )
    }
}

private func bootNames(_ connection: borrowing Connection) throws -> [Int64: String] {
    let rows = try connection.prepare("SELECT id, boot_id FROM boots")
    var names: [Int64: String] = [:]
    while try rows.step() { names[rows.required(0)] = rows.text(1) }
    return names
}

/// Returns when the newest record of a table was stored; nil without one.
private func newestTime(
    in table: String,
    _ connection: borrowing Connection,
    _ boots: [Int64: String]
) throws -> (row: Int64, time: EffortTime)? {
    let row = try connection.prepare(
        "SELECT boot, boottime, wall FROM \(table) ORDER BY rowid DESC LIMIT 1"
    )
    guard try row.step(), let boot = boots[row.required(0)] else { return nil }
    return (row.required(0), EffortTime(boot: boot, stamp: row.stamp(boottime: 1)))
}

/// Returns the latest of these times; rows of boots ascend with time.
private func latest(_ times: [(row: Int64, time: EffortTime)]) -> EffortTime? {
    times.max {
        ($0.row, $0.time.stamp.boot.nanoseconds) < ($1.row, $1.time.stamp.boot.nanoseconds)
    }?.time
}

/// Returns when the newest segment ends.
private func newestAudio(
    _ connection: borrowing Connection,
    _ boots: [Int64: String]
) throws -> EffortTime? {
    let row = try connection.prepare(
        """
        SELECT s.boot, s.boottime, s.wall, s.frames, r.rate FROM segments s
        JOIN runs r ON r.id=s.run WHERE s.id=(SELECT max(id) FROM segments)
        """
    )
    guard try row.step(), let boot = boots[row.required(0)], row.required(3).isPlausible,
        row.required(4) > 0
    else { return nil }
    let start = EffortTime(boot: boot, stamp: row.stamp(boottime: 1))
    return start.advanced(by: row.required(3) * 1000 / row.required(4))
}
