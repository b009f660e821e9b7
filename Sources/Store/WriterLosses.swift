// The writer's part for losses: the ledger, and the events that tell of it.
package import Host

/// A row of the ledger: all that was lost of a stream in one way since the database was made.
package struct LossEntry: Sendable, Equatable {
    package var stream: Stream
    package var kind: LossKind
    package var records: Int
    /// As well as the clock map knows now.
    package var from: WallTime
    package var to: WallTime
}

extension Writer {
    /// While losses go on, one event in this time tells of them.
    static let lossEventPause = Duration.seconds(300)

    /// Enters records of this boot that were lost.
    func note(_ loss: Loss) throws {
        try note(loss, fromBoot: boot, toBoot: boot)
    }

    /// Enters a loss whose ends may lie in other boots.
    func note(_ loss: Loss, fromBoot: Int64, toBoot: Int64) throws {
        guard loss.records > 0 else { return }
        try begin()
        let statement = try connection.prepare(
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
            """
        )
        try statement.bind(Int64(loss.stream.rawValue), at: 1)
        try statement.bind(loss.kind.rawValue, at: 2)
        let numbers = [
            loss.records, fromBoot, loss.from.boot.milliseconds, loss.from.wall.milliseconds,
            toBoot,
            loss.to.boot.milliseconds, loss.to.wall.milliseconds,
        ]
        try statement.bind(numbers, from: 3)
        try statement.run()
        untold = true
    }

    /// Everything lost so far.
    package func losses() throws -> [LossEntry] {
        try ledger().map {
            LossEntry(
                stream: $0.stream,
                kind: $0.kind,
                records: Int($0.records),
                from: $0.first,
                to: $0.last
            )
        }
    }

    /// Puts losses that no event has told of into the stream of events; at most one event a kind and pause.
    func tellLosses(atOnce: Bool) throws {
        guard untold else { return }
        let now = clock.now()
        if let told = toldAt, now - told < Self.lossEventPause, !atOnce { return }
        for row in try ledger() where row.records > row.told {
            try insert(
                Event(
                    row.kind.event,
                    source: "storage",
                    detail: [
                        ("stream", .text("\(row.stream)")), ("kind", .text(row.kind.rawValue)),
                        ("records", .integer(row.records - row.told)), ("from", .time(row.open)),
                        ("to", .time(row.last)),
                    ],
                    stamp: clock.stamp()
                )
            )
            try markTold(row)
        }
        untold = false
        toldAt = now
    }

    private func markTold(_ row: LedgerRow) throws {
        let update = try connection.prepare(
            "UPDATE losses SET told=records WHERE stream=? AND kind=?"
        )
        try update.bind(Int64(row.stream.rawValue), at: 1)
        try update.bind(row.kind.rawValue, at: 2)
        try update.run()
    }

    /// A loss that its source has told of in an event of its own.
    func noteTold(_ loss: Loss) throws { try noteTold(loss, fromBoot: boot, toBoot: boot) }

    func noteTold(_ loss: Loss, fromBoot: Int64, toBoot: Int64) throws {
        let wasUntold = untold
        try note(loss, fromBoot: fromBoot, toBoot: toBoot)
        let update = try connection.prepare(
            "UPDATE losses SET told=told+? WHERE stream=? AND kind=?"
        )
        try update.bind(loss.records, at: 1)
        try update.bind(Int64(loss.stream.rawValue), at: 2)
        try update.bind(loss.kind.rawValue, at: 3)
        try update.run()
        untold = wasUntold
    }

    private struct LedgerRow {
        var stream: Stream
        var kind: LossKind
        var records: Int64
        var told: Int64
        var first: WallTime
        /// The first that no event has told of.
        var open: WallTime
        var last: WallTime
    }

    private func ledger() throws -> [LedgerRow] {
        let rows = try connection.prepare("SELECT * FROM losses ORDER BY stream, kind")
        var ledger: [LedgerRow] = []
        while try rows.step() {
            guard let stream = Stream(rawValue: Int(rows.required(0))),
                let kind = LossKind(rawValue: rows.text(1))
            else { continue }
            ledger.append(
                LedgerRow(
                    stream: stream,
                    kind: kind,
                    records: rows.required(2),
                    told: rows.required(3),
                    first: moment(rows, from: 4),
                    open: moment(rows, from: 7),
                    last: moment(rows, from: 10)
                )
            )
        }
        return ledger
    }

    /// Boot, boottime and wall of three columns in a row, as the time it was.
    private func moment(_ row: borrowing Statement, from column: Int32) -> WallTime {
        clockMap.resolve(row.stamp(boottime: column + 1), boot: row.required(column)).wall
    }
}
