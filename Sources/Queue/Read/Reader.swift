// Reads records for upload and export, on a private connection with short transactions.
import Host
package import Records
import SQLite

/// The live database, next to a quarantined one.
///
/// A class, because an optional connection cannot be borrowed.
final class LiveDatabase {
    private let connection: Connection

    init(_ settings: QueueSettings) throws { connection = try settings.connect(nil, .readOnly) }

    /// Reads with `body`; throws `DatabaseDamagedError` for damage.
    func read<Value>(_ body: (borrowing Connection) throws -> Value) throws -> Value {
        do {
            return try body(connection)
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            throw DatabaseDamagedError(why: "\(error)")
        }
    }
}

/// Reads records; used by one thread.
///
/// Each call is one short read transaction, so that a slow upload never delays checkpoints.
package final class Reader {
    let connection: Connection
    /// The live database, for its clock map, if this one is quarantined.
    private let live: LiveDatabase?
    /// The numbers that a quarantined database gave to user streams.
    private var userNumbers: [String: Int] = [:]
    /// Maps its rows of `boots` to those of the live database.
    private var liveBoots: [Int64: Int64] = [:]
    let kinds: StreamList
    private let sightings: Statement
    private let identity: Statement
    private let chunk: Statement
    private let segment: Statement
    private var identities: [Int64: BeaconIdentity] = [:]
    /// A final chunk made of a quarantined database's segments that are not in a chunk yet.
    private var tail: Stored<Chunk>?
    var hasTail: Bool { tail != nil }
    /// An unknown amount of audio after the last chunk is unreadable.
    var isTailCut = false
    /// Opened as an older database, next to the live one.
    private let isAside: Bool
    /// The state at its last commit, if the process that wrote it quarantined it.
    let mark: CommitMark?

    /// Opens the live database.
    package convenience init(_ settings: QueueSettings) throws {
        try self.init(settings, path: settings.path, live: nil)
    }

    /// Opens a live database for inspection only.
    package convenience init(path: String) throws {
        try self.init(
            QueueSettings(path: path, bootID: "", appVersion: "")
        )
    }

    /// Opens a quarantined database that the live one knows.
    convenience init(
        _ settings: QueueSettings,
        older: OlderDatabase,
        _ patience: Patience = .waits
    ) throws {
        let live = try LiveDatabase(settings)
        try DamagedFile.extend(older.path, on: settings.disk)
        try self.init(settings, path: older.path, live: live, mark: older.mark)
        _ = try patience.read(loadUserNumbers)
        try findTail(patience)
        let rows = try live.read { connection in
            let known = try connection.prepare("SELECT id, boot_id FROM boots")
            var rows: [String: Int64] = [:]
            while try known.step() { rows[known.text(1)] = known.required(0) }
            return rows
        }
        // A temporary disk error must not drop boots: a retry would date records differently.
        liveBoots = try patience.read(boots)?.compactMapValues { rows[$0] } ?? [:]
    }

    /// Opens a quarantined database to inspect it.
    convenience init(
        _ settings: QueueSettings,
        damaged path: String,
        _ patience: Patience,
        mark: CommitMark? = nil
    ) throws {
        try DamagedFile.extend(path, on: settings.disk)
        try self.init(settings, path: path, live: nil, mark: mark)
        try findTail(patience)
    }

    private func findTail(_ patience: Patience) throws {
        if let found = try patience.read(soundWithoutChunk) {
            tail = found
        } else {
            isTailCut = true
        }
    }

    private init(
        _ settings: QueueSettings,
        path: String,
        live: LiveDatabase?,
        mark: CommitMark? = nil
    ) throws {
        self.mark = mark
        isAside = live != nil
        connection = try settings.connect(path, .readOnly)
        self.live = live
        kinds = StreamList(with: settings.moreStreams)
        try connection.execute("PRAGMA cache_size=-256")
        sightings = try connection.prepare(
            "SELECT * FROM sightings WHERE id BETWEEN ? AND ? ORDER BY id"
        )
        identity = try connection.prepare("SELECT * FROM beacons WHERE id=?")
        chunk = try connection.prepare(
            """
            SELECT c.id, c.boot, c.boottime, c.wall, c.first_segment, c.segments, c.frames,
            c.overlap_frames, c.mean_square, r.codec, r.rate, r.device, r.preskip, c.run,
            (SELECT s.boottime+s.frames*1000/max(1,r.rate) FROM segments s
            WHERE s.id=c.first_segment+c.segments-1)-c.boottime
            FROM chunks c JOIN runs r ON r.id=c.run WHERE c.id BETWEEN ? AND ? ORDER BY c.id
            """
        )
        segment = try connection.prepare("SELECT * FROM segments WHERE id=?")
    }

    private func loadUserNumbers() throws {
        let rows = try query("SELECT name, stream FROM sequences WHERE database=0 AND stream>=64")
        while try rows.step() { userNumbers[rows.text(0)] = Int(rows.required(1)) }
    }

    /// Returns the kind of a stream; streams that are not built in belong to the user.
    ///
    /// A quarantined database identifies it by name; without a number it has no table there.
    package func kind(of stream: Stream) -> StreamKind {
        if let kind = kinds[stream] { return kind }
        let number = live == nil ? stream.number : userNumbers[stream.name] ?? 0
        return StreamKind.user(number, stream.name, wire: stream.name)
    }

    func query(_ sql: String) throws -> Statement { try connection.prepare(sql) }

    // MARK: Ids and dates

    /// Returns the id generator for a range of records.
    package func ids(_ stream: Stream, _ range: ClosedRange<Int64>) throws -> RecordIDs {
        let own = kind(of: stream).stream
        guard isAside else { return try RecordIDs(connection, own, range) }
        let ids = try RecordIDs(connection, own, 1...max(1, range.upperBound))
        let row = try connection.prepare(
            "SELECT seeded, next FROM sequences WHERE database=0 AND stream=?"
        )
        try row.bind(Int64(own.number), at: 1)
        guard try row.step() else { return ids.trusted(from: 1, before: 1) }
        let next = row.required(1)
        // The tail has the number after the last, which may be wrong if the database is damaged.
        let isTail = hasTail && own == .audio && next.isPlausible
        return ids.trusted(from: row.required(0), before: next + (isTail ? 1 : 0))
    }

    /// Returns the clock map up to entry `last`, which dates the records of a batch or range.
    package func dates(through last: Int64) throws -> RecordDates {
        guard let live else {
            return RecordDates(map: try loadClockMap(connection, through: last), boots: nil)
        }
        guard last >= 0 else {
            // Its own map.
            return RecordDates(map: try loadClockMap(connection, through: -last), boots: nil)
        }
        let map = try live.read { try loadClockMap($0, through: last) }
        return RecordDates(map: map, boots: liveBoots)
    }

    // MARK: Records

    /// Calls `body` with each plain record of a range, in order.
    ///
    /// Throws `RecordMissingError` if one is missing.
    package func rows(
        _ kind: StreamKind,
        _ range: ClosedRange<Int64>,
        _ body: (Stored<PlainRow>) throws -> Void
    ) throws {
        guard case .plain(let columns) = kind.shape else { return }
        let names = (columns.flatMap(\.stored) + (kind.holdsText ? ["sum"] : []))
            .map { ", \($0)" }
        let rows = try connection.prepare(
            """
            SELECT id, boot, boottime, wall\(names.joined()) FROM \(kind.table)
            WHERE id BETWEEN ? AND ? ORDER BY id
            """
        )
        try each(kind.stream, rows, range) { row in
            var place: Int32 = 4
            let values = columns.map { $0.value(row, &place) }
            let sum = kind.holdsText ? row.integer(place) : nil
            try Checksum.check(
                Checksum.ofLong(values),
                against: sum,
                of: kind.table,
                row.required(0)
            )
            let record = PlainRow(kind.stream, row.stamp(boottime: 2), values)
            try body(Stored(sequence: row.required(0), boot: row.required(1), record: record))
        }
    }

    /// Calls `body` with each sighting of a range, in order; throws if one is missing.
    package func sightings(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Sighting>) throws -> Void
    ) throws {
        try each(.beacons, sightings, range) { row in
            guard let identity = try identity(row.required(1)) else {
                throw RecordMissingError(
                    stream: .beacons,
                    sequence: row.required(0),
                    why: "its beacon is not there"
                )
            }
            let payload = row.data(6)
            let sum = row.integer(7)
            try Checksum.check(Checksum.of(payload), against: sum, of: "sightings", row.required(0))
            let (telemetry, data) = SightingPayload.unpack(payload, identity.kind)
            try body(
                Stored(
                    sequence: row.required(0),
                    boot: row.required(3),
                    record: Sighting(
                        identity: identity,
                        rssi: row.integer(2).map { Int($0) },
                        telemetry: telemetry,
                        data: data,
                        stamp: row.stamp(boottime: 4)
                    )
                )
            )
        }
    }

    func identity(_ row: Int64) throws -> BeaconIdentity? {
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

    /// Calls `body` with each chunk of a range, in order; throws if one or a segment is missing.
    package func chunks(
        _ range: ClosedRange<Int64>,
        _ body: (Stored<Chunk>) throws -> Void
    ) throws {
        let ends = tail.map { range.contains($0.sequence) } ?? false
        let stored = ends ? range.lowerBound...max(range.lowerBound, range.upperBound - 1) : range
        if !ends || range.count > 1 {
            try each(.audio, chunk, stored) { try body(try chunk($0)) }
        }
        guard ends, let tail else { return }
        guard tail.record.segments > 0 else {
            throw RecordMissingError(stream: .audio, sequence: tail.sequence, why: "it is damaged")
        }
        try body(tail)
    }

    private func chunk(_ row: borrowing Statement) throws -> Stored<Chunk> {
        let sequence = row.required(0)
        guard let codec = AudioCodec(rawValue: Int(row.required(9))) else {
            throw RecordMissingError(
                stream: .audio,
                sequence: sequence,
                why: "its codec is not known"
            )
        }
        guard ([5, 6, 7, 10, 12] as [Int32]).allSatisfy({ row.required($0).isPlausible }),
            row.required(5) > 0, Int64(clamping: row.required(4).magnitude).isPlausible
        else { throw RecordMissingError(stream: .audio, sequence: sequence, why: "it is damaged") }
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
        // Device clocks are off by at most 5 %; anything else is damage.
        chunk.span = row.integer(14).flatMap {
            $0.isPlausible && abs($0 - chunk.duration) <= chunk.duration / 20 ? $0 : nil
        }
        try checkSegments(of: chunk, sequence, run: row.required(13))
        return Stored(sequence: sequence, boot: row.required(1), record: chunk)
    }

    /// Throws unless the chunk is a run of audio without gaps.
    private func checkSegments(of chunk: Chunk, _ sequence: Int64, run: Int64) throws {
        let last = chunk.firstSegment + Int64(chunk.segments) - 1
        let found = try connection.prepare(
            "SELECT count(*), sum(frames) FROM segments WHERE id BETWEEN ? AND ? AND run=?"
        )
        try found.bind([chunk.firstSegment, last, run], from: 1)
        guard try found.step(), found.required(0) == Int64(chunk.segments),
            found.required(1) == Int64(chunk.frames)
        else {
            throw RecordMissingError(stream: .audio, sequence: sequence, why: "its audio has a gap")
        }
    }

    /// Returns a segment's encoded audio and its run; nil once it is purged.
    ///
    /// Throws damage if the bytes differ from the recorded ones.
    package func segment(_ id: Int64) throws -> (data: [UInt8], run: Int64)? {
        try segment.bind(id, at: 1)
        defer { segment.reset() }
        guard try segment.step() else { return nil }
        let data = segment.data(7)
        try Checksum.check(Checksum.of(data), against: segment.integer(8), of: "segments", id)
        return (data, segment.required(1))
    }

    /// Calls `body` with each row of a range, in order; throws if a number is missing.
    private func each(
        _ stream: Stream,
        _ statement: borrowing Statement,
        _ range: ClosedRange<Int64>,
        _ body: (borrowing Statement) throws -> Void
    ) throws {
        if isAside { try checkEnd(stream, range.lowerBound) }
        try statement.bind(range.lowerBound, at: 1)
        try statement.bind(range.upperBound, at: 2)
        defer { statement.reset() }
        var expected = range.lowerBound
        while try statement.step() {
            // A damaged tree may lead to the same leaf twice, or skip rows.
            guard statement.required(0) == expected else { break }
            // The boot or beacon is never 0 unless the page was zeroed.
            guard statement.required(1) != 0 else {
                throw RecordMissingError(stream: stream, sequence: expected, why: "it is damaged")
            }
            expected += 1
            try body(statement)
        }
        guard expected > range.upperBound else {
            throw RecordMissingError(stream: stream, sequence: expected, why: "it is not there")
        }
    }
}

extension Statement {
    /// Reads boot time and wall time (ms) from two consecutive columns.
    func stamp(boottime column: Int32) -> Stamp {
        Stamp(
            boot: BootInstant(nanoseconds: required(column) &* 1_000_000),
            wall: WallTime(milliseconds: required(column + 1))
        )
    }
}
