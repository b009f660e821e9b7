// The database's only writer: its connection, its open transaction and its counters.
import Host
import Records
import SQLite

/// The writer's in-memory copy of database state; restored when a transaction fails.
struct WriterMemory: Sendable {
    var streams = StreamList()
    var live = PerStream<StreamCounters>()
    /// Counters of quarantined databases.
    var older: [Partition: StreamCounters] = [:]
    /// The quarantined databases whose records may be uploaded.
    var draining: Set<Int64> = []
    /// Numbers of all quarantined databases, by file name.
    var files: [String: Int64] = [:]
    var numbers = RowNumbers()
    var clockMap = ClockMap()
    var bootIsSynced = false
    var chunker = Chunker()
    /// Chunks that are not pending, because nobody has marked them; they count as frozen, too.
    var held = FrozenRanges()
    /// Pending chunks that no record has marked: a person asked for them, or the budget had room.
    var asked = FrozenRanges()
    /// Where the last finished audio run ended.
    var soundEnd: Stamp?
    /// The survey in progress, or one that has ended but has no report yet.
    var survey: OpenSurvey?
    /// Approximate number of fixes in its track.
    var places: Int64 = 0
    /// Lost records in the ledger, by `CommitMark.name` of stream and kind.
    var entered: [String: Int64] = [:]
    /// The ledger holds losses that no event has reported.
    var unreported = false
    /// When losses of a stream and kind were last recorded that no event has reported.
    var lostAt: [String: Stamp] = [:]
    /// When an event last reported losses.
    var reportedAt: BootInstant?
    /// The changes of the effort accounts in the open transaction.
    var effort = EffortNotes()

    subscript(partition: Partition) -> StreamCounters {
        get { (partition.isLive ? live[partition.stream] : older[partition]) ?? StreamCounters() }
        _modify {
            if partition.isLive {
                yield &live[partition.stream, default: StreamCounters()]
            } else {
                yield &older[partition, default: StreamCounters()]
            }
        }
    }

    /// Returns the pending and quarantined records of a quarantined database.
    func left(in database: Int64) -> Int64 {
        older.filter { $0.key.database == database }.values
            .reduce(0) { $0 + $1.waiting + $1.ready + $1.quarantined }
    }
}

extension PerStream {
    subscript(stream: Stream, default value: @autoclosure () -> Value) -> Value {
        get { self[stream] ?? value() }
        _modify {
            var found = self[stream] ?? value()
            self[stream] = nil
            defer { self[stream] = found }
            yield &found
        }
    }
}

/// Owns the writing connection.
///
/// Used only by the queue's thread.
package final class Writer {
    let connection: Connection
    let settings: QueueSettings
    var clock: any HostClock { settings.clock }
    var streams: StreamList {
        get { memory.streams }
        set { memory.streams = newValue }
    }
    var memory = WriterMemory()
    /// `memory` as of the last commit.
    private(set) var committed = WriterMemory()
    /// The row of `boots` for this boot.
    var boot: Int64 = 0
    let identities: IdentityCache
    /// The random part of the ids that this process assigns.
    let seed: [UInt8]
    /// The database's page size in bytes.
    let pageBytes: Int64
    /// Bytes per eviction step, rounded up to a whole record; limited by the WAL's size.
    var evictionBytes: Int64 = 256 << 10

    /// When the open transaction began; nil if none is open.
    private var opened: BootInstant?
    private var wantsCommit = false
    /// Bytes of records in the open transaction.
    private(set) var openBytes = 0

    let insertSighting: Statement
    let insertSegment: Statement
    let plainTables: PlainTables
    /// The last row of `beacons` that was checked for having no sightings.
    var beaconsLookedAt: Int64 = 0

    init(
        _ settings: QueueSettings,
        user streams: [DeclaredStream],
        numbers: [String: Int] = [:]
    ) throws {
        connection = try Schema.open(path: settings.path, vfs: settings.disk.vfs)
        pageBytes = max(512, try connection.integer("PRAGMA page_size") ?? 4096)
        self.settings = settings
        let random = [settings.random(), settings.random()]
        seed = random.flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64($0 * 8)) }
        }
        insertSighting = try connection.prepare("INSERT INTO sightings VALUES (?,?,?,?,?,?,?,?)")
        insertSegment = try connection.prepare("INSERT INTO segments VALUES (?,?,?,?,?,?,?,?,?)")
        plainTables = PlainTables()
        identities = try IdentityCache(connection)
        try load(streams, numbers)
    }

    var clockMap: ClockMap {
        get { memory.clockMap }
        _modify { yield &memory.clockMap }
    }

    var chunker: Chunker {
        get { memory.chunker }
        _modify { yield &memory.chunker }
    }

    package internal(set) var survey: OpenSurvey? {
        get { memory.survey }
        set { memory.survey = newValue }
    }

    private func load(_ user: [DeclaredStream], _ numbers: [String: Int]) throws {
        try begin()
        try checkBooks()
        boot = try row(ofBoot: settings.bootID)
        memory.clockMap = try loadClockMap(connection, through: .max)
        memory.bootIsSynced =
            try connection.integer(
                "SELECT 1 FROM clock_map WHERE boot=? AND synced=1 LIMIT 1",
                boot
            ) != nil
        memory.numbers = try loadNumbers()
        memory.older = try loadOlder()
        try reopenFinished()
        let known = try olderDatabases()
        memory.draining = Set(known.filter { $0.state == .draining }.map(\.id))
        // Names are not unique in a damaged table.
        memory.files = Dictionary(known.map { ($0.name, $0.id) }) { first, _ in first }
        try declare(user: user, numbers: try numbersBefore(numbers))
        try loadHeld()
        memory.places = try connection.integer("SELECT count(*) FROM survey_track") ?? 0
        memory.unreported =
            try connection.integer("SELECT 1 FROM losses WHERE told<records LIMIT 1") != nil
        for row in try Ledger.rows(connection, streams, clockMap) {
            memory.entered[CommitMark.name(row.stream, row.kind)] = row.records
        }
        memory.survey = try loadSurvey()
        committed = memory
        try soundChanged()
        try recoverAudio()
        try commit()
    }

    func row(ofBoot name: String) throws -> Int64 {
        let statement = try connection.prepare(
            "INSERT INTO boots(boot_id) VALUES (?1) ON CONFLICT DO UPDATE SET boot_id=?1 RETURNING id"
        )
        try statement.bind(name, at: 1)
        let row = try statement.step() ? statement.required(0) : boot
        // Step to the end: an error may surface only there.
        _ = try statement.step()
        return row
    }

    // MARK: The transaction

    /// Begins a transaction if none is open.
    func begin() throws {
        guard opened == nil else {
            // SQLite may end a transaction by itself (FULL, IOERR). Continuing would commit each
            // statement alone and write the earlier ones twice.
            guard connection.isAutocommit else { return }
            throw SQLiteError(code: 10, message: "SQLite ended the transaction", statement: "BEGIN")
        }
        try connection.run("BEGIN IMMEDIATE")
        opened = clock.now()
    }

    /// Commits everything since the last commit.
    package func commit() throws {
        guard opened != nil else { return }
        for database in memory.draining { try closeDrained(database) }
        try storeNumbers(since: committed)
        try connection.run("COMMIT")
        mustHold(connection.isAutocommit, "a commit ends the transaction")
        opened = nil
        openBytes = 0
        wantsCommit = false
        committed = memory
        identities.committed()
    }

    /// Rolls back everything since the last commit.
    func rollback() throws {
        opened = nil
        openBytes = 0
        wantsCommit = false
        memory = committed
        identities.forgetAll()
        plainTables.forgetAll(but: streams)
        if !connection.isAutocommit { try connection.execute("ROLLBACK") }
        mustHold(connection.isAutocommit, "a rollback ends the transaction")
    }

    /// Returns the time until the open transaction is due for commit; nil if none is open.
    func commitDelay(interval: Duration) -> Duration? {
        guard let opened else { return nil }
        return wantsCommit ? .zero : max(.zero, interval - (clock.now() - opened))
    }

    var isOpen: Bool { opened != nil }

    /// Requests an immediate commit of the open transaction.
    func commitSoon() { wantsCommit = true }

    // MARK: Records

    /// Adds to the byte count of the open transaction.
    func recordBytes(_ count: Int) {
        invariant(count >= 0, "a record has bytes")
        openBytes += count
    }

    /// Assigns the next number of a live stream to a record of `bytes` stored bytes.
    func nextSequence(_ stream: Stream, bytes: Int) throws -> Int64 {
        // A single lookup in the common case: every sighting calls this.
        if let next = memory.live[stream]?.allocateSeeded(bytes) {
            openBytes += bytes
            return next
        }
        try storeSeed(stream)
        openBytes += bytes
        return memory.live[stream, default: StreamCounters()].allocate(bytes)
    }

    func insert(_ record: QueuedRecord) throws {
        switch record {
        case .sighting(let sighting): try insert(sighting)
        case .row(let row): try insert(row)
        case .put(let rows, let memos, _):
            for row in rows { try insert(row) }
            try self.record(memos: memos)
        case .place(let fix): try insert(place: fix)
        case .begin(let run): try begin(run)
        case .segment(let segment): try insert(segment)
        case .end(_, let count, let end): try endRun(count: count, at: end)
        }
    }

    /// Stores a plain record; `boot` is the boot row of its stamp, by default the current one.
    func insert(_ row: PlainRow, boot: Int64? = nil) throws {
        try begin()
        let sequence = try nextSequence(row.stream, bytes: row.storedBytes)
        try plainTables.insert(row, sequence, boot: boot ?? self.boot)
        if let loss = row.loss { try recordReported(loss) }
        if row.stream.number >= Stream.firstOfUser { try markSound(around: row) }
    }

    func insert(_ event: Event) throws { try insert(PlainRow(event)) }

    func insert(_ sighting: Sighting) throws {
        try begin()
        let beacon = try identities.row(
            of: sighting.identity,
            next: memory.live[.beacons]?.next ?? 1,
            numbers: &memory.numbers.beacons
        )
        mustHold(beacon < memory.numbers.beacons, "a sighting is of a beacon that has a row")
        let payload = SightingPayload.pack(sighting)
        let sequence = try nextSequence(.beacons, bytes: StreamKind.rowBytes + payload.count)
        try insertSighting.bind(sequence, at: 1)
        try insertSighting.bind(beacon, at: 2)
        try insertSighting.bind(sighting.rssi.map(Int64.init), at: 3)
        try bind(sighting.stamp, insertSighting, from: 4)
        try insertSighting.bind(payload.isEmpty ? nil : payload, at: 7)
        try insertSighting.bind(Checksum.ofLong(payload), at: 8)
        try insertSighting.run()
    }

    /// Binds boot, boottime and wall to three consecutive parameters.
    func bind(
        _ stamp: Stamp,
        of boot: Int64? = nil,
        _ statement: borrowing Statement,
        from index: Int32
    ) throws {
        try statement.bind(boot ?? self.boot, at: index)
        try statement.bind(stamp.boot.milliseconds, at: index + 1)
        try statement.bind(stamp.wall.milliseconds, at: index + 2)
    }
}

extension StreamCounters {
    /// Returns nil until the stream has a seed.
    fileprivate mutating func allocateSeeded(_ size: Int) -> Int64? {
        hasSeed ? allocate(size) : nil
    }

    /// Assigns the next number to a record of `size` bytes.
    fileprivate mutating func allocate(_ size: Int) -> Int64 {
        mustHold(seeded <= next, "a record has an id of this process")
        next += 1
        pendingBytes += Int64(size)
        return next - 1
    }
}
