// The one writer: a connection, the open transaction, and the counters of each stream.
internal import Host

/// What the writer knows of a stream without asking the database.
struct StreamCounters {
    /// The sequence number of the next record.
    var next: Int64 = 1
    /// Records that are in a batch or gone.
    var frozen = FrozenRanges()
    var uploaded: Int64 = 0
    var quarantined: Int64 = 0
    var evicted: Int64 = 0
    /// Records in batches that are frozen and not judged yet.
    var ready: Int64 = 0
    /// Stored bytes of the records since the start, for an average.
    var bytes: Int64 = 0
    var inserted: Int64 = 0

    /// Records that no batch has yet.
    var waiting: Int64 { frozen.pending(upTo: next - 1) }
}

/// What the writer remembers of the database; taken back with a transaction that fails.
struct WriterMemory {
    var counters = PerStream<StreamCounters>()
    var clockMap = ClockMap()
    var bootIsSynced = false
    var chunker = Chunker()
    /// The ledger holds losses that no event has told of.
    var untold = false
}

/// Owns the writing connection.
///
/// Lives on the queue's own thread and never leaves it.
package final class Writer {
    let connection: Connection
    let clock: any HostClock
    let appVersion: String
    private var memory = WriterMemory()
    /// As it was at the last commit.
    private var committed = WriterMemory()
    /// The row of `boots` for this boot.
    var boot: Int64 = 0
    let identities: IdentityCache
    var recordIDs: RecordIDs
    /// Bytes of a page of the database.
    let pageBytes: Int64
    /// When an event last told of losses.
    var toldAt: BootInstant?
    /// What one step of an eviction deletes, about: a transaction that the journal has room for.
    var evictionBytes: Int64 = 256 << 10

    /// When the open transaction began; nil when there is none.
    private var opened: BootInstant?
    private var wantsCommit = false
    /// Bytes of the records in the open transaction.
    private(set) var openBytes = 0

    private let insertFix: Statement
    let insertSighting: Statement
    private let insertEvent: Statement
    let insertSegment: Statement

    init(path: String, bootID: String, clock: any HostClock, appVersion: String) throws {
        connection = try Schema.open(path: path)
        pageBytes = max(512, try connection.integer("PRAGMA page_size") ?? 4096)
        self.clock = clock
        self.appVersion = appVersion
        insertFix = try connection.prepare(
            "INSERT INTO location VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        )
        insertSighting = try connection.prepare("INSERT INTO sightings VALUES (?,?,?,?,?,?,?)")
        insertEvent = try connection.prepare("INSERT INTO events VALUES (?,?,?,?,?,?,?)")
        insertSegment = try connection.prepare("INSERT INTO segments VALUES (?,?,?,?,?,?,?,?)")
        identities = try IdentityCache(connection)
        recordIDs = RecordIDs(generation: [])
        try load(bootID: bootID)
    }

    var counters: PerStream<StreamCounters> {
        get { memory.counters }
        _modify { yield &memory.counters }
    }

    var clockMap: ClockMap {
        get { memory.clockMap }
        _modify { yield &memory.clockMap }
    }

    var bootIsSynced: Bool {
        get { memory.bootIsSynced }
        set { memory.bootIsSynced = newValue }
    }

    var chunker: Chunker {
        get { memory.chunker }
        _modify { yield &memory.chunker }
    }

    var untold: Bool {
        get { memory.untold }
        set { memory.untold = newValue }
    }

    private func load(bootID: String) throws {
        recordIDs = try loadRecordIDs(connection)
        let findBoot = try connection.prepare(
            "INSERT INTO boots(boot_id) VALUES (?1) ON CONFLICT DO UPDATE SET boot_id=?1 RETURNING id"
        )
        try findBoot.bind(bootID, at: 1)
        if try findBoot.step() { boot = findBoot.required(0) }
        findBoot.reset()
        clockMap = try loadClockMap(connection, through: .max)
        bootIsSynced =
            try connection.integer(
                "SELECT 1 FROM clock_map WHERE boot=? AND synced=1 LIMIT 1",
                boot
            ) != nil
        for stream in Stream.allCases { counters[stream] = try loadCounters(stream) }
        untold = try connection.integer("SELECT 1 FROM losses WHERE told<records LIMIT 1") != nil
        committed = memory
        try recoverSound()
    }

    private func loadCounters(_ stream: Stream) throws -> StreamCounters {
        let id = Int64(stream.rawValue)
        var counters = StreamCounters()
        let row = try connection.prepare(
            "SELECT purged_through, uploaded, evicted FROM streams WHERE id=?"
        )
        try row.bind(id, at: 1)
        guard try row.step() else { return counters }
        let purged = row.required(0)
        counters.uploaded = row.required(1)
        counters.evicted = row.required(2)
        let newest = try connection.integer("SELECT max(id) FROM \(stream.table)") ?? 0
        let batched = try connection.integer("SELECT max(last) FROM batches WHERE stream=?", id)
        counters.next = max(newest, purged, batched ?? 0) + 1
        if stream == .audio {
            // Chunks differ a thousandfold in size between codecs: only their own size tells.
            let newest = "SELECT bytes FROM chunks ORDER BY id DESC LIMIT 50"
            counters.bytes = try connection.integer("SELECT sum(bytes) FROM (\(newest))") ?? 0
            counters.inserted = try connection.integer("SELECT count(*) FROM (\(newest))") ?? 0
        }
        counters.frozen = FrozenRanges(through: purged, try batchRanges(id))
        let sum = "SELECT sum(last-first+1) FROM batches WHERE stream=? AND state=?"
        counters.ready = try connection.integer(sum, id, Batch.State.ready.rawValue) ?? 0
        counters.quarantined =
            try connection.integer(sum, id, Batch.State.quarantined.rawValue) ?? 0
        return counters
    }

    private func batchRanges(_ stream: Int64) throws -> [ClosedRange<Int64>] {
        let rows = try connection.prepare("SELECT first, last FROM batches WHERE stream=?")
        try rows.bind(stream, at: 1)
        var ranges: [ClosedRange<Int64>] = []
        while try rows.step() {
            guard rows.required(0) <= rows.required(1) else { continue }
            ranges.append(rows.required(0)...rows.required(1))
        }
        return ranges
    }

    // MARK: The transaction

    /// Begins a transaction if none is open.
    func begin() throws {
        guard opened == nil else {
            // SQLite may end a transaction by itself (FULL, IOERR). Going on would commit each statement
            // alone, and what came before would be written again.
            guard connection.isAutocommit else { return }
            throw SQLiteError(code: 10, message: "the transaction is gone", statement: "BEGIN")
        }
        try connection.execute("BEGIN IMMEDIATE")
        opened = clock.now()
    }

    /// Puts everything since the last commit on the disk.
    package func commit() throws {
        guard opened != nil else { return }
        try connection.execute("COMMIT")
        opened = nil
        openBytes = 0
        wantsCommit = false
        committed = memory
    }

    /// Forgets everything since the last commit.
    func rollback() throws {
        opened = nil
        openBytes = 0
        wantsCommit = false
        memory = committed
        identities.forgetAll()
        if !connection.isAutocommit { try connection.execute("ROLLBACK") }
    }

    /// How long until the open transaction must be committed; nil when there is none.
    func commitDelay(interval: Duration) -> Duration? {
        guard let opened else { return nil }
        return wantsCommit ? .zero : max(.zero, interval - (clock.now() - opened))
    }

    /// The open transaction holds something that should be on the disk now.
    func commitSoon() { wantsCommit = true }

    // MARK: Records

    /// So many bytes more are in the open transaction.
    func noteBytes(_ count: Int) { openBytes += count }

    /// Gives out the next sequence number of a stream.
    func nextSequence(_ stream: Stream, bytes: Int) -> Int64 {
        var counters = counters[stream] ?? StreamCounters()
        defer { self.counters[stream] = counters }
        counters.next += 1
        counters.bytes += Int64(bytes)
        openBytes += bytes
        counters.inserted += 1
        return counters.next - 1
    }

    func insert(_ fix: Fix, boot: Int64? = nil) throws {
        try begin()
        let sequence = nextSequence(.location, bytes: 48)
        try insertFix.bind(sequence, at: 1)
        try bind(fix.stamp, of: boot, insertFix, from: 2)
        try insertFix.bind(Int64(fix.mode.rawValue), at: 5)
        try insertFix.bind(scaled(fix.latitude, 1e7), at: 6)
        try insertFix.bind(scaled(fix.longitude, 1e7), at: 7)
        try insertFix.bind(scaled(fix.altitude, 10), at: 8)
        try insertFix.bind(scaled(fix.speed, 100), at: 9)
        try insertFix.bind(scaled(fix.course, 10), at: 10)
        try insertFix.bind(scaled(fix.horizontalAccuracy, 10), at: 11)
        try insertFix.bind(scaled(fix.verticalAccuracy, 10), at: 12)
        try insertFix.bind(fix.satellites.map(Int64.init), at: 13)
        try insertFix.bind(fix.receiverTime?.milliseconds, at: 14)
        try insertFix.run()
    }

    func insert(_ sighting: Sighting, boot: Int64? = nil) throws {
        try begin()
        let beacon = try identities.row(
            of: sighting.identity,
            next: counters[.beacons]?.next ?? 1
        )
        let payload = SightingPayload.pack(sighting)
        let sequence = nextSequence(.beacons, bytes: 24 + payload.count)
        try insertSighting.bind(sequence, at: 1)
        try insertSighting.bind(beacon, at: 2)
        try insertSighting.bind(sighting.rssi.map(Int64.init), at: 3)
        try bind(sighting.stamp, of: boot, insertSighting, from: 4)
        try insertSighting.bind(payload.isEmpty ? nil : payload, at: 7)
        try insertSighting.run()
    }

    func insert(_ event: Event) throws {
        try begin()
        try insertEvent(
            event.stamp,
            kind: event.kind.rawValue,
            source: event.source,
            detail: EventDetail.encode(event.detail)
        )
        if let loss = event.loss { try noteTold(loss) }
    }

    func insertEvent(
        _ stamp: Stamp,
        boot: Int64? = nil,
        kind: String,
        source: String,
        detail: String
    ) throws {
        let sequence = nextSequence(.events, bytes: 40 + detail.utf8.count)
        try insertEvent.bind(sequence, at: 1)
        try bind(stamp, of: boot, insertEvent, from: 2)
        try insertEvent.bind(kind, at: 5)
        try insertEvent.bind(source, at: 6)
        try insertEvent.bind(detail, at: 7)
        try insertEvent.run()
    }

    /// Binds boot, boottime and wall to three parameters in a row.
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

/// A number as the integer it is stored as; nil for nil, and for what no Int64 holds.
private func scaled(_ value: Double?, _ factor: Double) -> Int64? {
    guard let value else { return nil }
    let scaled = (value * factor).rounded(.toNearestOrAwayFromZero)
    return abs(scaled) < 9e15 ? Int64(scaled) : nil
}

extension Stream {
    /// The table whose rows are the stream's records.
    var table: String {
        switch self {
        case .location: "location"
        case .audio: "chunks"
        case .beacons: "sightings"
        case .events: "events"
        }
    }
}

/// Reads how the ids of the database's records are made.
func loadRecordIDs(_ connection: borrowing Connection) throws -> RecordIDs {
    let statement = try connection.prepare("SELECT generation FROM database")
    guard try statement.step() else {
        throw SQLiteError(code: 11, message: "no generation in the database", statement: "")
    }
    var ids = RecordIDs(generation: statement.data(0))
    guard try connection.integer("PRAGMA user_version") ?? 0 >= 2 else { return ids }
    let rows = try connection.prepare("SELECT * FROM origins ORDER BY stream, first")
    while try rows.step() {
        guard let stream = Stream(rawValue: Int(rows.required(0))) else { continue }
        ids.add(
            RecordIDs.Origin(
                first: rows.required(1),
                last: rows.required(2),
                generation: rows.data(3),
                oldFirst: rows.required(4)
            ),
            stream
        )
    }
    return ids
}
