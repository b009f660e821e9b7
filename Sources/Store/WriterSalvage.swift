// The writer's part for salvage: taking over records of a database that was set aside.
internal import Host

extension Writer {
    /// Rows of salvaged segments and runs are negative: those being recorded must stay neighbours.
    private static let firstSegment: Int64 = -(1 << 40)

    func isSalvaged(_ path: String) throws -> Bool {
        try salvaged("SELECT count(*) FROM salvages WHERE path=? AND stream=0 AND done=1", path) > 0
    }

    func salvagedThrough(_ path: String, _ stream: Stream) throws -> Int64 {
        try salvaged(
            "SELECT through FROM salvages WHERE path=? AND stream=\(stream.rawValue)",
            path
        )
    }

    private func salvaged(_ sql: String, _ path: String) throws -> Int64 {
        let row = try connection.prepare(sql)
        try row.bind(path, at: 1)
        return try row.step() ? row.required(0) : 0
    }

    /// Makes the boots of the old database known, and what was known of their clocks; once.
    func adoptClock(
        boots: [Int64: String],
        clock: [ClockMap.Entry],
        from path: String
    ) throws {
        let mark = try salvaged("SELECT count(*) FROM salvages WHERE path=? AND stream=0", path)
        guard mark == 0 else { return }
        try begin()
        for entry in clock {
            guard let name = boots[entry.boot] else { continue }
            try adopt(entry, boot: row(ofBoot: name))
        }
        try noteProgress(path, 0, through: 0, records: 0, lost: 0)
    }

    private func adopt(_ entry: ClockMap.Entry, boot: Int64) throws {
        let known = try connection.integer(
            "SELECT 1 FROM clock_map WHERE boot=? AND boottime=? LIMIT 1",
            boot,
            entry.boottime
        )
        guard known == nil else { return }
        let insert = try connection.prepare(
            "INSERT INTO clock_map(boot, boottime, wall, synced, source) VALUES (?,?,?,?,?)"
        )
        try insert.bind([boot, entry.boottime, entry.wall, entry.synced ? 1 : 0], from: 1)
        if let source = entry.source { try insert.bind(source.rawValue, at: 5) }
        try insert.run()
        var copy = entry
        copy.id = connection.lastInsertedRow
        copy.boot = boot
        clockMap.add(copy)
        if boot == self.boot, entry.synced { bootIsSynced = true }
    }

    /// Takes records over under new numbers; `ids` keeps their ids.
    func adopt(
        _ records: [SalvagedRecord],
        _ stream: Stream,
        ids: RecordIDs?,
        boots: [Int64: String]
    ) throws {
        var rows: [Int64: Int64] = [:]
        var origins: [RecordIDs.Origin] = []
        for record in records {
            let old = boot(of: record)
            if rows[old] == nil { rows[old] = try row(ofBoot: boots[old] ?? "unknown \(old)") }
            let sequence = counters[stream]?.next ?? 1
            try insert(record, boot: rows[old] ?? boot)
            if let ids, !ids.generation.isEmpty {
                extend(&origins, sequence, ids.origin(stream, record.sequence))
            }
        }
        for origin in origins { try store(origin, stream) }
    }

    private func boot(of record: SalvagedRecord) -> Int64 {
        switch record {
        case .fix(let stored): stored.boot
        case .sighting(let stored): stored.boot
        case .event(let stored, _, _, _): stored.boot
        case .chunk(let stored, _): stored.boot
        }
    }

    private func insert(_ record: SalvagedRecord, boot: Int64) throws {
        try begin()
        switch record {
        case .fix(let stored): try insert(stored.record, boot: boot)
        case .sighting(let stored): try insert(stored.record, boot: boot)
        case .event(let stored, let kind, let source, let detail):
            try insertEvent(
                stored.record,
                boot: boot,
                kind: kind,
                source: source,
                detail: detail
            )
        case .chunk(let stored, let segments):
            try insert(stored.record, segments: segments, boot: boot)
        }
    }

    private func insert(_ chunk: Chunk, segments: [[UInt8]], boot: Int64) throws {
        let run = min(0, try connection.integer("SELECT min(id) FROM runs") ?? 0) - 1
        let newest = try connection.integer("SELECT max(id) FROM segments WHERE id<0")
        let first = (newest ?? Self.firstSegment) + 1
        try insertRun(AudioRun(of: chunk, id: run))
        // How long each segment was is not known any more; how long they were together is.
        let share = chunk.frames / max(1, segments.count)
        let span = chunk.span ?? chunk.duration
        var notes: [SegmentNote] = []
        for (index, data) in segments.enumerated() {
            let isLast = index == segments.count - 1
            let offset = span * Int64(index) / Int64(segments.count)
            let segment = Segment(
                run: run,
                frames: isLast ? chunk.frames - share * index : share,
                start: chunk.start.advanced(by: .milliseconds(offset)),
                meanSquare: chunk.meanSquare,
                data: data
            )
            notes.append(try insertSegment(segment, id: first + Int64(index), boot: boot))
        }
        guard let start = notes.first else { return }
        let note = ChunkNote(segments: notes, overlapFrames: Int64(chunk.overlapFrames))
        try insertChunk(note, of: run, from: start)
    }

    // MARK: Origins

    private func extend(
        _ origins: inout [RecordIDs.Origin],
        _ sequence: Int64,
        _ old: (generation: [UInt8], row: Int64)
    ) {
        if let last = origins.last, last.generation == old.generation, last.last + 1 == sequence,
            last.oldFirst + sequence - last.first == old.row
        {
            origins[origins.count - 1].last = sequence
        } else {
            origins.append(
                RecordIDs.Origin(
                    first: sequence,
                    last: sequence,
                    generation: old.generation,
                    oldFirst: old.row
                )
            )
        }
    }

    private func store(_ origin: RecordIDs.Origin, _ stream: Stream) throws {
        let statement = try connection.prepare("INSERT INTO origins VALUES (?,?,?,?,?)")
        try statement.bind(Int64(stream.rawValue), at: 1)
        try statement.bind(origin.first, at: 2)
        try statement.bind(origin.last, at: 3)
        try statement.bind(origin.generation, at: 4)
        try statement.bind(origin.oldFirst, at: 5)
        try statement.run()
        recordIDs.add(origin, stream)
    }

    // MARK: Progress

    func noteSalvaged(
        _ path: String,
        _ stream: Stream,
        through: Int64,
        records: Int,
        lost: Int
    ) throws {
        try noteProgress(path, stream.rawValue, through: through, records: records, lost: lost)
        guard lost > 0 else { return }
        // When they were captured is not known any more; that they were is.
        let now = clock.stamp()
        try noteTold(Loss(.corrupt, stream, records: Int64(lost), from: now, to: now))
    }

    private func noteProgress(
        _ path: String,
        _ stream: Int,
        through: Int64,
        records: Int,
        lost: Int
    ) throws {
        try begin()
        let statement = try connection.prepare(
            """
            INSERT INTO salvages VALUES (?1,?2,?3,?4,?5,0) ON CONFLICT(path, stream) DO UPDATE SET
            through=max(through, excluded.through), records=records+excluded.records,
            lost=lost+excluded.lost
            """
        )
        try statement.bind(path, at: 1)
        try statement.bind([Int64(stream), through, Int64(records), Int64(lost)], from: 2)
        try statement.run()
    }

    /// Notes the end of a salvage and tells of it.
    func finishSalvage(_ path: String, isReadable: Bool) throws {
        try noteProgress(path, 0, through: 0, records: 0, lost: 0)
        let done = try connection.prepare("UPDATE salvages SET done=1 WHERE path=?")
        try done.bind(path, at: 1)
        try done.run()
        var detail: [(key: String, value: EventValue)] = [
            ("database", .text(path.split(separator: "/").last.map { String($0) } ?? path)),
            ("readable", .text(isReadable ? "yes" : "no")),
        ]
        var records: Int64 = 0
        var lost: Int64 = 0
        for stream in Stream.allCases {
            let of = "FROM salvages WHERE path=? AND stream=\(stream.rawValue)"
            let count = try salvaged("SELECT records \(of)", path)
            detail.append(("\(stream)", .integer(count)))
            records += count
            lost += try salvaged("SELECT lost \(of)", path)
        }
        detail.append(("records", .integer(records)))
        detail.append(("lost", .integer(lost)))
        try insert(
            Event(.databaseSalvaged, source: "storage", detail: detail, stamp: clock.stamp())
        )
    }

    private func row(ofBoot name: String) throws -> Int64 {
        let statement = try connection.prepare(
            "INSERT INTO boots(boot_id) VALUES (?1) ON CONFLICT DO UPDATE SET boot_id=?1 RETURNING id"
        )
        try statement.bind(name, at: 1)
        return try statement.step() ? statement.required(0) : boot
    }
}

extension AudioRun {
    /// The run that a chunk alone was of.
    fileprivate init(of chunk: Chunk, id: Int64) {
        self.init(
            id: id,
            codec: chunk.codec,
            rate: chunk.rate,
            device: chunk.device,
            preskip: chunk.preskip,
            overlapSegments: 0
        )
    }
}
