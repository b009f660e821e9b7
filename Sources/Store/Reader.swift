// Reading records back, for upload and export: a connection of its own, short transactions.
package import Host

/// A record as it is stored: its sequence number and the boot that its stamp belongs to.
package struct Stored<Record> {
    package var sequence: Int64
    package var boot: Int64
    package var record: Record
}

extension Stored: Sendable where Record: Sendable {}

/// A chunk of sound: a record of the audio stream, by reference to its segments.
package struct Chunk: Sendable, Equatable {
    package var codec: AudioCodec
    package var rate: Int
    package var device: String
    package var preskip: Int
    package var firstSegment: Int64
    package var segments: Int
    package var frames: Int
    package var overlapFrames: Int
    package var meanSquare: Double
    package var start: Stamp
    /// From its first frame to the end of its last in ms, as the board's clock measured it; nil: not known.
    package var span: Int64?

    /// The length of its sound in ms: frames over rate.
    package var duration: Int64 { Int64(frames) * 1000 / Int64(max(1, rate)) }
}

/// Reads records; used by one thread.
///
/// Each call is one short read transaction, so that a slow upload never holds the journal back.
package final class Reader {
    private let connection: Connection
    private let fixes: Statement
    private let sightings: Statement
    private let identity: Statement
    private let events: Statement
    private let chunk: Statement
    private let segment: Statement
    private var identities: [Int64: BeaconIdentity] = [:]
    package private(set) var recordIDs: RecordIDs
    private var salvaged: Int64 = 0

    /// False for a damaged database that does not tell its ids any more.
    let hasIDs: Bool

    convenience init(path: String) throws { try self.init(path, isDamaged: false) }

    /// Opens a database that was set aside.
    convenience init(salvaging path: String) throws { try self.init(path, isDamaged: true) }

    private init(_ path: String, isDamaged: Bool) throws {
        connection = try Connection(path: path, access: .readOnly)
        try connection.execute("PRAGMA cache_size=-256")
        if isDamaged, let ids = try? loadRecordIDs(connection) {
            recordIDs = ids
            hasIDs = true
        } else {
            recordIDs = isDamaged ? RecordIDs(generation: []) : try loadRecordIDs(connection)
            hasIDs = !isDamaged
        }
        fixes = try connection.prepare(
            "SELECT * FROM location WHERE id BETWEEN ? AND ? ORDER BY id"
        )
        sightings = try connection.prepare(
            "SELECT * FROM sightings WHERE id BETWEEN ? AND ? ORDER BY id"
        )
        identity = try connection.prepare("SELECT * FROM beacons WHERE id=?")
        events = try connection.prepare("SELECT * FROM events WHERE id BETWEEN ? AND ? ORDER BY id")
        chunk = try connection.prepare(
            """
            SELECT c.id, c.boot, c.boottime, c.wall, c.first_segment, c.segments, c.frames,
            c.overlap_frames, c.mean_square, r.codec, r.rate, r.device, r.preskip,
            (SELECT s.boottime+s.frames*1000/max(1,r.rate) FROM segments s
            WHERE s.id=c.first_segment+c.segments-1)-c.boottime
            FROM chunks c JOIN runs r ON r.id=c.run WHERE c.id BETWEEN ? AND ? ORDER BY c.id
            """
        )
        segment = try connection.prepare("SELECT data, run FROM segments WHERE id=?")
    }

    /// Looks again whose records were salvaged: a salvage may be going on.
    package func refreshIDs() throws {
        let now = try connection.integer("SELECT ifnull(sum(last), 0) + count(*) FROM origins") ?? 0
        guard now != salvaged else { return }
        salvaged = now
        recordIDs = try loadRecordIDs(connection)
    }

    /// The clock map as it was when entry `last` was its newest.
    package func clockMap(through last: Int64) throws -> ClockMap {
        try loadClockMap(connection, through: last)
    }

    package func fixes(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Fix>) throws -> Void
    ) throws {
        try each(fixes, range) { row in
            var fix = Fix(
                stamp: row.stamp(boottime: 2),
                mode: row.required(4) == 3 ? .threeDimensional : .twoDimensional,
                latitude: Double(row.required(5)) / 1e7,
                longitude: Double(row.required(6)) / 1e7
            )
            fix.altitude = row.integer(7).map { Double($0) / 10 }
            fix.speed = row.integer(8).map { Double($0) / 100 }
            fix.course = row.integer(9).map { Double($0) / 10 }
            fix.horizontalAccuracy = row.integer(10).map { Double($0) / 10 }
            fix.verticalAccuracy = row.integer(11).map { Double($0) / 10 }
            fix.satellites = row.integer(12).map { Int($0) }
            fix.receiverTime = row.integer(13).map { WallTime(milliseconds: $0) }
            try body(Stored(sequence: row.required(0), boot: row.required(1), record: fix))
        }
    }

    package func sightings(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Sighting>) throws -> Void
    ) throws {
        try sightings.bind(range.lowerBound, at: 1)
        try sightings.bind(range.upperBound, at: 2)
        defer { sightings.reset() }
        while try sightings.step() {
            guard let identity = try identity(sightings.required(1)) else { continue }
            let payload = sightings.data(6)
            let isKnown = identity.kind != .manufacturer && identity.kind != .service
            try body(
                Stored(
                    sequence: sightings.required(0),
                    boot: sightings.required(3),
                    record: Sighting(
                        identity: identity,
                        rssi: sightings.integer(2).map { Int($0) },
                        telemetry: isKnown
                            ? Telemetry(packed: payload) ?? Telemetry() : Telemetry(),
                        data: isKnown ? [] : payload,
                        stamp: sightings.stamp(boottime: 4)
                    )
                )
            )
        }
    }

    private func identity(_ row: Int64) throws -> BeaconIdentity? {
        if let known = identities[row] { return known }
        try identity.bind(row, at: 1)
        defer { identity.reset() }
        guard try identity.step(), let kind = BeaconKind(rawValue: Int(identity.required(1))),
            let type = AddressType(rawValue: Int(identity.required(4)))
        else { return nil }
        let found = BeaconIdentity(
            kind: kind,
            beaconID: identity.text(2),
            address: BluetoothAddress(value: UInt64(bitPattern: identity.required(3))),
            addressType: type,
            txPower: identity.integer(5).map { Int($0) }
        )
        if identities.count >= IdentityCache.limit { identities.removeAll(keepingCapacity: true) }
        identities[row] = found
        return found
    }

    /// `body` gets kind, source and the detail as JSON text.
    package func events(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Stamp>, _ kind: String, _ source: String, _ detail: String) throws -> Void
    ) throws {
        try each(events, range) { row in
            let stored = Stored(
                sequence: row.required(0),
                boot: row.required(1),
                record: row.stamp(boottime: 2)
            )
            try body(stored, row.text(4), row.text(5), row.text(6))
        }
    }

    package func chunks(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Chunk>) throws -> Void
    ) throws {
        try each(chunk, range) { row in
            guard let codec = AudioCodec(rawValue: Int(row.required(9))) else { return }
            var chunk = Chunk(
                codec: codec,
                rate: Int(row.required(10)),
                device: row.text(11),
                preskip: Int(row.required(12)),
                firstSegment: row.required(4),
                segments: Int(row.required(5)),
                frames: Int(row.required(6)),
                overlapFrames: Int(row.required(7)),
                meanSquare: row.number(8) ?? 0,
                start: row.stamp(boottime: 2)
            )
            // A device is no further off than this; anything else is damage.
            chunk.span = row.integer(13).flatMap {
                abs($0 - chunk.duration) <= chunk.duration / 20 ? $0 : nil
            }
            try body(Stored(sequence: row.required(0), boot: row.required(1), record: chunk))
        }
    }

    /// A segment's encoded sound and the run it belongs to; nil once it is purged.
    package func segment(_ id: Int64) throws -> (data: [UInt8], run: Int64)? {
        try segment.bind(id, at: 1)
        defer { segment.reset() }
        guard try segment.step() else { return nil }
        return (segment.data(0), segment.required(1))
    }

    private func each(
        _ statement: borrowing Statement,
        _ range: ClosedRange<Int64>,
        _ body: (borrowing Statement) throws -> Void
    ) throws {
        try statement.bind(range.lowerBound, at: 1)
        try statement.bind(range.upperBound, at: 2)
        defer { statement.reset() }
        while try statement.step() { try body(statement) }
    }
}

extension Statement {
    /// The moment that two columns in a row hold: boot time and wall time in ms.
    func stamp(boottime column: Int32) -> Stamp {
        Stamp(
            boot: BootInstant(nanoseconds: required(column) &* 1_000_000),
            wall: WallTime(milliseconds: required(column + 1))
        )
    }
}

// MARK: For a damaged database

extension Reader {
    func boots() throws -> [Int64: String] {
        var boots: [Int64: String] = [:]
        let rows = try connection.prepare("SELECT id, boot_id FROM boots")
        while try rows.step() { boots[rows.required(0)] = rows.text(1) }
        return boots
    }

    func clockEntries() throws -> [ClockMap.Entry] {
        var entries: [ClockMap.Entry] = []
        // The first version has no column for who vouched.
        let version = try connection.integer("PRAGMA user_version") ?? 0
        let source = version >= 2 ? "source" : "NULL"
        let rows = try connection.prepare(
            "SELECT id, boot, boottime, wall, synced, \(source) FROM clock_map ORDER BY id"
        )
        while try rows.step() { entries.append(ClockMap.Entry(rows)) }
        return entries
    }

    func edge(_ function: String, _ stream: Stream) throws -> Int64? {
        try connection.integer("SELECT \(function)(id) FROM \(stream.table)")
    }

    func ranges(_ sql: String, _ value: Int64) throws -> [ClosedRange<Int64>] {
        let rows = try connection.prepare(sql)
        try rows.bind(value, at: 1)
        var ranges: [ClosedRange<Int64>] = []
        while try rows.step() {
            guard rows.required(0) <= rows.required(1) else { continue }
            ranges.append(rows.required(0)...rows.required(1))
        }
        return ranges
    }

    func count(_ stream: Stream, _ range: ClosedRange<Int64>) throws -> Int {
        let sql = "SELECT count(*) FROM \(stream.table) WHERE id BETWEEN ? AND ?"
        return Int(try connection.integer(sql, range.lowerBound, range.upperBound) ?? 0)
    }

    func lastRun() throws -> AudioRun? { try loadLastRun(connection) }

    func lastChunkedSegment(run: Int64) throws -> Int64? {
        try connection.integer("SELECT max(first_segment+segments-1) FROM chunks WHERE run=?", run)
    }

    func segments(
        run: Int64,
        after id: Int64,
        _ body: (
            _ id: Int64, _ boot: Int64, _ start: Stamp, _ frames: Int, _ meanSquare: Double,
            _ data: [UInt8]
        ) throws -> Void
    ) throws {
        let rows = try connection.prepare(
            """
            SELECT id, boot, boottime, wall, frames, mean_square, data FROM segments
            WHERE id>? AND run=? ORDER BY id LIMIT 61
            """
        )
        try rows.bind(id, at: 1)
        try rows.bind(run, at: 2)
        while try rows.step() {
            try body(
                rows.required(0),
                rows.required(1),
                rows.stamp(boottime: 2),
                Int(rows.required(4)),
                rows.number(5) ?? 0,
                rows.data(6)
            )
        }
    }
}
