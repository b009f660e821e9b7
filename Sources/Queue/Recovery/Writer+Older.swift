// Keeps the bookkeeping of quarantined databases in the live one.
import Host
import Records
import SQLite

extension Writer {
    package func olderDatabases() throws -> [OlderDatabase] {
        let rows = try connection.prepare("SELECT id, name, state FROM databases ORDER BY id")
        return try rows.compactMap {
            OlderDatabase(id: $0.required(0), name: $0.text(1), state: $0.required(2), settings)
        }
    }

    /// Imports the bookkeeping of a database, and of those that it was draining.
    func adopt(_ inheritance: Inheritance, name: String) throws {
        try begin()
        if let effort = inheritance.effort { memory.effort.inherited.append(effort) }
        let id = try insertDatabase(name, .adopted)
        try insert(olderBoots: inheritance.boots)
        let notes = try inheritance.clock.map { entry in
            let boot = inheritance.boots[entry.boot]
            return (old: entry.id, new: try boot.map { try adopt(entry, boot: row(ofBoot: $0)) })
        }
        let boots = try inheritance.boots.mapValues { try row(ofBoot: $0) }
        try adopt(losses: inheritance.losses, boots: boots)
        for day in inheritance.traffic { try record(day) }
        try adopt(finished: inheritance.finished)
        var ids: [String: Int64] = [:]
        var isComplete = inheritance.isComplete
        for line in inheritance.lines {
            guard let stream = try claim(line.stream) else {
                isComplete = false
                continue
            }
            guard let file = line.file else {
                var own = line
                // Its batches were frozen with its own clock map and must stay byte-identical.
                for index in own.batches.indices { own.batches[index].clockMap.negate() }
                try adopt(own, Partition(stream, of: id))
                try giveUp(held: own.held, of: Partition(stream, of: id))
                continue
            }
            guard ids[file] != nil || memory.files[file] == nil else { continue }
            let older = try ids[file] ?? insertDatabase(file, .adopted)
            ids[file] = older
            var its = line
            its.batches = try line.batches.compactMap { try translated($0, notes) }
            try adopt(its, Partition(stream, of: older))
        }
        for file in inheritance.reported where ids[file] != nil {
            try record(memos: [Self.salvageMemo(file): "reported"])
        }
        try adoptSurvey(inheritance, boots, before: id)
        if !isComplete || !inheritance.isReadable {
            try connection.run("UPDATE databases SET is_known=0 WHERE id=?", id)
        }
        if !inheritance.isReadable { try reportSalvage(id, isReadable: false, isKnown: false) }
    }

    /// Records held sound of a damaged database as lost: it must not be uploaded, and nothing can mark it there.
    private func giveUp(held: [ClosedRange<Int64>], of partition: Partition) throws {
        guard settings.sound.value.mode != .all else { return }
        for part in held.flatMap({ memory[partition].free(in: $0) }) { try lose(partition, part) }
    }

    /// Inserts the boots of a quarantined database before all others.
    ///
    /// Rows and boots ascend together; otherwise retention would count the time of these boots as
    /// time since an upload of this database.
    func insert(olderBoots boots: [Int64: String]) throws {
        // 0 and -1 mean none.
        var row = min(-1, try connection.integer("SELECT min(id) FROM boots") ?? 0)
        for (_, name) in boots.sorted(by: { $0.key > $1.key }) where try boot(named: name) == 0 {
            row -= 1
            try connection.run("INSERT INTO boots(id, boot_id) VALUES (?,?)", row, name)
        }
    }

    /// Continues a survey, which went on in the next database.
    ///
    /// If that one is not fully known, the survey may have ended there and is not continued.
    private func adoptSurvey(
        _ inheritance: Inheritance,
        _ boots: [Int64: Int64],
        before database: Int64
    ) throws {
        let sql = "SELECT count(*) FROM databases WHERE is_known=0 AND id<?"
        guard let survey = inheritance.survey, try connection.integer(sql, database) == 0 else {
            return
        }
        let line = inheritance.lines.first { $0.file == nil && $0.stream == .beacons }
        try adopt(survey, next: line?.next ?? 1, boots: boots)
    }

    /// Translates the clock map of a batch that was frozen by the database that drained it.
    ///
    /// Entries have other rows here. Returns nil if its records would be dated differently under
    /// the same key: they wait for another batch.
    private func translated(
        _ batch: Batch,
        _ notes: [(old: Int64, new: Int64?)]
    ) throws -> Batch? {
        guard batch.clockMap > 0 else { return batch }
        let its = notes.filter { $0.old <= batch.clockMap }
        let known = its.compactMap(\.new)
        var batch = batch
        batch.clockMap = known.max() ?? 0
        // A quarantined batch gets a new key when it is sent again.
        guard batch.state == .ready else { return batch }
        let synced = "SELECT id FROM clock_map WHERE id<=? AND synced=1"
        let others = try connection.prepare(synced, batch.clockMap)
            .compactMap { known.contains($0.required(0)) ? nil : $0.required(0) }
        return known.count == its.count && others.isEmpty ? batch : nil
    }

    /// Registers fully drained databases: their files may still exist, but are not sent again.
    private func adopt(finished files: [String]) throws {
        for file in files where settings.disk.exists("\(settings.folder)/\(file)") {
            guard memory.files[file] == nil else { continue }
            _ = try insertDatabase(file, .finished)
        }
    }

    private func insertDatabase(_ name: String, _ state: OlderDatabase.State) throws -> Int64 {
        let id = memory.numbers.databases
        memory.numbers.databases += 1
        let insert = "INSERT INTO databases(id, name, state) VALUES (?,?,?)"
        try connection.run(insert, id, name, state.rawValue)
        memory.files[name] = id
        return id
    }

    private func adopt(_ line: Inheritance.Line, _ partition: Partition) throws {
        try insertSequence(partition)
        memory.older[partition] = StreamCounters()
        memory[partition].next = line.next
        for range in line.settled { try settle(partition, range) }
        for var batch in line.batches where batch.last < line.next {
            guard memory[partition].frozen.isPending(batch.first...batch.last) else { continue }
            batch.database = partition.database
            batch.stream = partition.stream
            _ = try insert(batch)
            memory[partition].frozen.insert(batch.first...batch.last)
            let records = Int64(batch.records)
            if batch.state == .ready {
                memory[partition].ready += records
            } else {
                memory[partition].quarantined += records
            }
        }
    }

    /// Imports a clock map entry of another database; returns its row here.
    private func adopt(_ entry: ClockMap.Entry, boot: Int64) throws -> Int64 {
        let known = try connection.integer(
            "SELECT id FROM clock_map WHERE boot=? AND boottime=? AND wall=? AND synced=? LIMIT 1",
            boot,
            entry.boottime,
            entry.wall,
            entry.synced ? 1 : 0
        )
        if let known { return known }
        var copy = entry
        copy.boot = boot
        if boot == self.boot, entry.synced { memory.bootIsSynced = true }
        return try insert(copy)
    }

    /// Records missing or unreadable records as lost, including frozen ones.
    package func lose(_ partition: Partition, _ range: ClosedRange<Int64>) throws {
        for part in memory[partition].free(in: range) {
            try subtractPending(partition, part)
            try enterAsLost(partition, part)
        }
        let held = try batches(
            "WHERE state<>1 AND stream=? AND database=? AND first<=? AND last>=?",
            Int64(partition.stream.number),
            partition.database,
            range.upperBound,
            range.lowerBound
        )
        for batch in held { try lose(range.clamped(to: batch.first...batch.last), of: batch) }
    }

    /// Records one unreadable record of a frozen batch as lost.
    package func lose(_ sequence: Int64, of batch: Batch) throws {
        guard let held = try batches("WHERE id=? AND state=0", batch.id).first,
            held.key == batch.key, (held.first...held.last).contains(sequence)
        else { return }
        try lose(sequence...sequence, of: held)
    }

    /// Removes a range from a batch; the records on either side become new batches.
    private func lose(_ range: ClosedRange<Int64>, of batch: Batch) throws {
        mustHold(
            batch.first <= range.lowerBound && range.upperBound <= batch.last,
            "what is lost of a batch is in it"
        )
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        for (first, last) in [
            (batch.first, range.lowerBound - 1), (range.upperBound + 1, batch.last),
        ] where first <= last {
            var part = batch
            part.key = UUIDText.random(settings.random(), settings.random())
            part.first = first
            part.last = last
            // The columns of a part are others, which may not carry it.
            part.form = .rows
            _ = try insert(part)
        }
        let count = Int64(range.count)
        if batch.state == .ready {
            try subtractPending(batch.partition, range)
            memory[batch.partition].ready -= count
        } else {
            memory[batch.partition].quarantined -= count
        }
        try enterAsLost(batch.partition, range)
    }

    private func enterAsLost(_ partition: Partition, _ range: ClosedRange<Int64>) throws {
        let (now, count) = (clock.stamp(), Int64(range.count))
        try record(Loss(.corrupt, partition.stream, records: count, from: now, to: now))
        memory[partition].evicted += count
        try forgetOverlap(after: range.upperBound, in: partition)
        try remove(partition, range)
    }

    /// Records an older database's pending records as lost if its file was deleted.
    ///
    /// Returns false if the file exists, or if the whole folder is away.
    package func giveUpIfGone(_ database: Int64) throws -> Bool {
        guard let older = try olderDatabases().first(where: { $0.id == database }),
            DatabaseFile.isGone(older.name, settings)
        else { return false }
        for (partition, counters) in memory.older
        where partition.database == database && counters.next > 1 {
            try lose(partition, 1...(counters.next - 1))
        }
        if older.state == .adopted {
            try reportSalvage(database, isReadable: false, isKnown: true)
        } else {
            try close(database)
        }
        return true
    }

    /// Marks all records as read: the readable ones are pending from now on.
    func finishSalvage(_ database: Int64) throws {
        try begin()
        let isKnown =
            try connection.integer("SELECT is_known FROM databases WHERE id=?", database) ?? 1
        try reportSalvage(database, isReadable: true, isKnown: isKnown == 1)
    }

    private func reportSalvage(_ database: Int64, isReadable: Bool, isKnown: Bool) throws {
        let lines = memory.older.filter { $0.key.database == database }
        let waiting = memory.left(in: database)
        let lost = lines.values.reduce(0) { $0 + $1.evicted }
        let name = memory.files.first { $0.value == database }?.key ?? ""
        var detail: [(key: String, value: EventValue)] = [
            ("database", .text(name)), ("readable", .text(isReadable ? "yes" : "no")),
        ]
        for (partition, counters) in lines.sorted(by: { $0.key.stream.name < $1.key.stream.name }) {
            detail.append((partition.stream.name, .integer(counters.waiting + counters.ready)))
        }
        detail.append(("records", .integer(waiting)))
        detail.append(("lost", isKnown ? .integer(lost) : .text("unknown")))
        // An earlier live database may have reported it.
        if try memos()[Self.salvageMemo(name)] == nil {
            try insert(
                Event(.databaseSalvaged, source: "storage", detail: detail, stamp: clock.stamp())
            )
        }
        let state = waiting > 0 ? OlderDatabase.State.draining : .finished
        try connection.run("UPDATE databases SET state=? WHERE id=?", state.rawValue, database)
        if state == .draining { memory.draining.insert(database) } else { try close(database) }
    }

    private static func salvageMemo(_ file: String) -> String { "salvage of \(file)" }

    /// Closes an older database without pending records; adds its counters to the live streams.
    func close(_ database: Int64) throws {
        try begin()
        for (partition, counters) in memory.older where partition.database == database {
            let live = Partition(partition.stream)
            memory[live].uploaded += counters.uploaded
            memory[live].evicted += counters.evicted
            memory.older[partition] = nil
        }
        memory.draining.remove(database)
        try connection.run("DELETE FROM sequences WHERE database=?", database)
        try connection.run("DELETE FROM gone WHERE database=?", database)
        try connection.run("UPDATE databases SET state=2 WHERE id=?", database)
    }

    /// Reopens finished databases that still have bookkeeping rows: damage changed their state.
    func reopenFinished() throws {
        try connection.run(
            """
            UPDATE databases SET state=1
            WHERE state=2 AND id IN (SELECT database FROM sequences)
            """
        )
    }

    /// Closes an older database once it is drained; part of each commit.
    func closeDrained(_ database: Int64) throws {
        guard memory.draining.contains(database), memory.left(in: database) == 0 else { return }
        try close(database)
    }

    // MARK: Eviction

    /// Deletes the file of a drained older database; returns false if there is none.
    func evictOlderFile() throws -> Bool {
        let finished = try olderDatabases().filter { $0.state == .finished }
        for older in finished where settings.disk.exists(older.path) {
            for suffix in ["-wal", "-shm"] { settings.disk.remove(older.path + suffix) }
            // Otherwise nothing would ever delete the WAL.
            guard !settings.disk.exists(older.path + "-wal"), settings.disk.remove(older.path)
            else { continue }
            // Delete the mark last: without it, records of a failed commit would be read again.
            settings.disk.remove(older.path + CommitMark.suffix)
            return true
        }
        return false
    }

    /// Returns the draining database with the lowest number, which `evictOlder` evicts.
    func evictableOlder() throws -> OlderDatabase? {
        guard let database = memory.draining.min() else { return nil }
        return try olderDatabases().first { $0.id == database }
    }

    /// Evicts the waiting records of the draining database with the lowest number.
    ///
    /// Its file gives back space only as a whole. Returns false while sent batches await a verdict.
    func evictOlder() throws -> Bool {
        guard let database = memory.draining.min() else { return false }
        for (partition, counters) in memory.older where partition.database == database {
            guard counters.waiting > 0 else { continue }
            for part in counters.free() {
                try countGone(partition, part, .evicted)
                try remove(partition, part)
            }
        }
        for batch in try batches("WHERE state=2 AND database=?", database) {
            try countGone(batch.partition, batch.first...batch.last, .evicted)
            memory[batch.partition].quarantined -= Int64(batch.records)
            try connection.run("DELETE FROM batches WHERE id=?", batch.id)
            try remove(batch.partition, batch.first...batch.last)
        }
        // Batches already sent still await their verdict.
        guard memory.left(in: database) == 0 else { return false }
        try close(database)
        return true
    }
}
