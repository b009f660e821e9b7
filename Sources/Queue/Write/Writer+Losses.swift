// Records losses in the ledger and writes the events that report them.
import Host
import Records
import SQLite

extension Writer {
    /// The minimum time between two loss events while losses continue.
    static let lossEventPause = Duration.seconds(300)

    /// Records a loss that happened in this boot.
    func record(_ loss: Loss) throws {
        memory.effort.record(loss)
        try record(loss, fromBoot: boot, toBoot: boot)
    }

    /// Records a loss that may start or end in other boots.
    func record(_ loss: Loss, fromBoot: Int64, toBoot: Int64) throws {
        guard loss.records > 0 else { return }
        try begin()
        try connection.run(
            """
            INSERT INTO losses(stream, kind, records, told, first_boot, first_boottime, first_wall,
            open_boot, open_boottime, open_wall, last_boot, last_boottime, last_wall)
            VALUES (?1,?2,?3,0,?4,?5,?6,?4,?5,?6,?7,?8,?9)
            ON CONFLICT(stream, kind) DO UPDATE SET
            open_boot=iif(told=records, excluded.open_boot, open_boot),
            open_boottime=iif(told=records, excluded.open_boottime, open_boottime),
            open_wall=iif(told=records, excluded.open_wall, open_wall),
            last_boot=excluded.last_boot, last_boottime=excluded.last_boottime,
            last_wall=excluded.last_wall, records=records+excluded.records
            """,
            loss.stream.number,
            loss.kind.rawValue,
            loss.records,
            fromBoot,
            loss.from.boot.milliseconds,
            loss.from.wall.milliseconds,
            toBoot,
            loss.to.boot.milliseconds,
            loss.to.wall.milliseconds
        )
        let name = CommitMark.name(loss.stream, loss.kind)
        memory.entered[name, default: 0] += loss.records
        memory.lostAt[name] = clock.stamp()
        memory.unreported = true
    }

    /// Writes events for unreported losses, one per stream and kind.
    ///
    /// Does so at most once per `lossEventPause`, which `atOnce` ignores. An event is dated when the
    /// last of its losses was recorded.
    func reportLosses(atOnce: Bool) throws {
        guard memory.unreported else { return }
        let now = clock.now()
        if let reported = memory.reportedAt, now - reported < Self.lossEventPause, !atOnce {
            return
        }
        for row in try Ledger.rows(connection, streams, clockMap) where row.records > row.reported {
            let name = CommitMark.name(row.stream, row.kind)
            let stamp = memory.lostAt[name] ?? clock.stamp()
            var detail: [(key: String, value: EventValue)] = [
                ("stream", .text("\(row.stream)")), ("kind", .text(row.kind.rawValue)),
                ("records", .integer(row.records - row.reported)),
                ("from", reported(row.open, boot: row.openBoot, at: stamp)),
                ("to", reported(row.last, boot: row.lastBoot, at: stamp)),
            ]
            // Records are evicted only for lack of space.
            if row.kind == .evicted {
                detail.append(("code", .text(ErrorCode.storageFull.rawValue)))
            }
            try insert(Event(row.kind.event, source: "storage", detail: detail, stamp: stamp))
            let update = "UPDATE losses SET told=records WHERE stream=? AND kind=?"
            try connection.run(update, row.stream.number, row.kind.rawValue)
        }
        (memory.unreported, memory.reportedAt, memory.lostAt) = (false, now, [:])
    }

    /// Returns a time for an event with stamp `now`.
    ///
    /// The wall clock of `now` may still be wrong, so a time of this boot is shifted to match it.
    func reported(_ time: WallTime, boot: Int64, at now: Stamp) -> EventValue {
        guard boot == self.boot else { return .known(time) }
        let ahead = now.wall.milliseconds &- clockMap.resolve(now, boot: boot).wall.milliseconds
        return .seen(WallTime(milliseconds: time.milliseconds &+ ahead))
    }

    /// Records a loss that its source has already reported in an event.
    func recordReported(_ loss: Loss) throws {
        memory.effort.record(loss)
        try recordReported(loss, fromBoot: boot, toBoot: boot)
    }

    func recordReported(_ loss: Loss, fromBoot: Int64, toBoot: Int64) throws {
        let wasUnreported = memory.unreported
        try record(loss, fromBoot: fromBoot, toBoot: toBoot)
        let update = "UPDATE losses SET told=told+? WHERE stream=? AND kind=?"
        try connection.run(update, loss.records, loss.stream.number, loss.kind.rawValue)
        memory.unreported = wasUnreported
    }
}
