// The records in all databases of a device, read without the gateway's code.
internal import Records
internal import SimulatedDisk
internal import SQLite

/// The serial numbers of records and segments on a disk, and the loss ledger.
struct Presence {
    var records: Set<Int> = []
    var segments: Set<Int> = []
    /// Lost records in the ledger, by stream number.
    var ledger: [Int: Int] = [:]
    /// Records that were recorded as lost because they could not be read.
    var givenUp = 0
    /// Records in frozen batches without a verdict.
    var ready: Set<Int> = []
    /// Records in quarantine, and the last segments of quarantined chunks.
    var quarantined: Set<Int> = []
    var quarantinedSegments: Set<Int> = []
    /// An unfinished quarantined database exists.
    var hasOlder = false
    /// Names of quarantined databases whose loss ledger a newer one has taken over.
    private var adopted: Set<String> = []
    /// Why part of the live database could not be read.
    var unreadable: String?
    /// Records behind an unreadable page are also searched one by one.
    private var isThorough = false

    /// Reads as much of a damaged database as possible; `isThorough` also searches behind
    /// unreadable pages.
    init(_ disk: SimulatedDisk, streams: [StreamKind], isThorough: Bool = false) {
        self.init(isThorough: isThorough)
        readAll(try? OpenDatabase(on: disk.copy(seed: 1)), disk, streams: streams, OlderFiles())
    }

    private init(isThorough: Bool) { self.isThorough = isThorough }

    init(
        _ live: OpenDatabase?,
        _ disk: SimulatedDisk,
        streams: [StreamKind],
        _ files: OlderFiles = OlderFiles()
    ) {
        readAll(live, disk, streams: streams, files)
    }

    private mutating func readAll(
        _ live: OpenDatabase?,
        _ disk: SimulatedDisk,
        streams: [StreamKind],
        _ files: OlderFiles
    ) {
        do {
            guard let live else { throw Violation("readable", "it does not open") }
            for kind in streams {
                do {
                    try read(kind, live.connection, nil)
                } catch {
                    unreadable = "\(kind.stream): \(error)"
                }
            }
            try readLedger(live.connection)
            let waiting = "SELECT count(*) FROM databases WHERE state<2"
            hasOlder = try live.connection.integer(waiting) ?? 0 > 0
            try readAdopted(live.connection)
        } catch {
            unreadable = "\(error)"
        }
        readOlder(disk, streams, files)
    }

    /// Returns the paths of the quarantined databases.
    static func olderPaths(_ disk: SimulatedDisk) -> [String] {
        disk.files.filter {
            $0.hasPrefix(Device.path + ".corrupt-") && !$0.hasSuffix("-wal")
                && !$0.hasSuffix("-shm") && !$0.hasSuffix("-mark")
        }
    }

    /// Reads the quarantined databases.
    private mutating func readOlder(
        _ disk: SimulatedDisk,
        _ streams: [StreamKind],
        _ files: OlderFiles
    ) {
        // The newest first: it may have taken over the ledgers of those before it.
        for path in Self.olderPaths(disk).sorted(by: >) {
            hasOlder = true
            let older = files.find(path, disk, streams) { copy in
                var older = Presence(isThorough: isThorough)
                guard let database = try? OpenDatabase(path, on: copy) else { return older }
                let mark = Mark(of: path, copy)
                for kind in streams {
                    do {
                        try older.read(kind, database.connection, mark)
                    } catch {
                        older.readEach(kind, database.connection, mark)
                    }
                }
                try? older.readLedger(database.connection)
                try? older.readAdopted(database.connection)
                return older
            }
            records.formUnion(older.records)
            segments.formUnion(older.segments)
            ready.formUnion(older.ready)
            // Its ledger is taken over with its other tables; a failing disk may delay that.
            let name = path.split(separator: "/").last.map { String($0) } ?? path
            guard !adopted.contains(name) else { continue }
            ledger.merge(older.ledger) { $0 + $1 }
            adopted.formUnion(older.adopted)
        }
    }

    private mutating func readAdopted(_ live: borrowing Connection) throws {
        // As the program reads it: without an index, whose bytes may have been changed.
        let names = try live.prepare("SELECT name FROM databases NOT INDEXED")
        while try names.step() { adopted.insert(names.text(0)) }
    }

    private mutating func readLedger(_ live: borrowing Connection) throws {
        let rows = try live.prepare("SELECT stream, sum(records) FROM losses GROUP BY stream")
        while try rows.step() { ledger[Int(rows.required(0))] = Int(rows.required(1)) }
        let unread = "SELECT sum(records) FROM losses WHERE kind='corrupt'"
        givenUp = Int(try live.integer(unread) ?? 0)
    }

    /// Returns the column that identifies a record.
    static func column(_ stream: Stream) -> String {
        switch stream {
        case .beacons: "payload"
        // A half-written page may contain positions that no source recorded.
        case .location: "CASE WHEN longitude_e7=2*latitude_e7 AND mode=3 THEN latitude_e7 END"
        case .events: "detail"
        case .replies: "job + (state = 'kept') + 2 * (state = 'rolled_back')"
        case .surveys, .health: "report"
        case .effort: "source || state || ifnull(reason, '')"
        default: "data"
        }
    }

    /// Reads a stream; in the live database only records that are neither deleted nor uploaded
    /// count.
    private mutating func read(
        _ kind: StreamKind,
        _ connection: borrowing Connection,
        _ mark: Mark?
    ) throws {
        if case .sound = kind.shape { return try readAudio(connection, mark) }
        let rows = try connection.prepare(
            """
            SELECT \(Self.column(kind.stream)), id FROM \(kind.table) WHERE id<\(mark?.next[kind.stream.name] ?? .max) ORDER BY id
            """
        )
        var batches = try Self.batches(kind.stream.number, connection)[...]
        while try rows.step() {
            while let batch = batches.first, batch.last < rows.required(1) { batches.removeFirst() }
            let state = batches.first.flatMap { $0.first <= rows.required(1) ? $0.state : nil }
            // Uploaded, and kept for its retention.
            if state == 1 { continue }
            guard let serial = Self.serial(kind.stream, rows), serial < 100_000_000 else {
                continue
            }
            records.insert(serial)
            if state == 0 { ready.insert(serial) }
            if state == 2 { quarantined.insert(serial) }
        }
    }

    /// Reads a table number by number: an unreadable page does not hide those behind it.
    private mutating func readEach(
        _ kind: StreamKind,
        _ connection: borrowing Connection,
        _ mark: Mark?
    ) {
        guard isThorough else { return }
        let newest = try? connection.integer("SELECT max(id) FROM \(kind.table)")
        for id in 1...min(100_000, max(1, newest ?? 1))
        where id < mark?.next[kind.stream.name] ?? .max {
            if case .sound = kind.shape {
                readSegments(ofChunk: id, connection)
            } else {
                try? readRow(kind, connection, id)
            }
        }
    }

    private mutating func readRow(
        _ kind: StreamKind,
        _ connection: borrowing Connection,
        _ id: Int64
    ) throws {
        let row = try connection.prepare(
            "SELECT \(Self.column(kind.stream)) FROM \(kind.table) WHERE id=?"
        )
        try row.bind(id, at: 1)
        guard try row.step(), let serial = Self.serial(kind.stream, row), serial < 100_000_000
        else { return }
        records.insert(serial)
    }

    private mutating func readSegments(ofChunk id: Int64, _ connection: borrowing Connection) {
        func value(_ column: String) -> Int64? {
            try? connection.integer("SELECT \(column) FROM chunks WHERE id=?", id)
        }
        guard let first = value("first_segment"), let count = value("segments"), count > 0,
            count < 1000
        else { return }
        for segment in first..<(first + count) {
            guard let row = try? connection.prepare("SELECT data FROM segments WHERE id=?"),
                (try? row.bind(segment, at: 1)) != nil, (try? row.step()) == true,
                let serial = Serial.read(row.data(0))
            else { continue }
            segments.insert(serial)
        }
    }

    private typealias BatchRange = (first: Int64, last: Int64, state: Int64)

    /// Returns the batches of a stream by their first numbers.
    private static func batches(
        _ stream: Int,
        _ connection: borrowing Connection
    ) throws -> [BatchRange] {
        let rows = try connection.prepare(
            "SELECT first, last, state FROM batches WHERE database=0 AND stream=? ORDER BY first"
        )
        try rows.bind(Int64(stream), at: 1)
        var batches: [BatchRange] = []
        while try rows.step() {
            batches.append((rows.required(0), rows.required(1), rows.required(2)))
        }
        return batches
    }

    private static func serial(_ stream: Stream, _ row: borrowing Statement) -> Int? {
        switch stream {
        case .beacons:
            let payload = row.data(0)
            return Serial.read(payload.first == 0 ? payload.dropFirst() : payload[...])
        case .location: return row.integer(0).map { Int($0) }
        case .events: return WireJSON(Array(row.text(0).utf8))?["n"]?.integer
        case .surveys: return WireJSON(Array(row.text(0).utf8))?["n"]?.integer
        case .health: return WireJSON(Array(row.text(0).utf8))?["pending"]?["n"]?.integer
        case .replies: return row.integer(0).map { Int($0) }
        // The program's own.
        case .effort: return nil
        default:
            let members = row.isText(0) ? Array(row.text(0).utf8) : row.data(0)
            return WireJSON(Array("{".utf8) + members + Array("}".utf8))?["n"]?.integer
        }
    }

    /// Reads segments that are in a chunk, or will be.
    private mutating func readAudio(_ connection: borrowing Connection, _ mark: Mark?) throws {
        let tail =
            mark.map {
                "s.run=\($0.run) AND s.id>=\($0.tail.lowerBound) AND s.id<\($0.tail.upperBound)"
            } ?? """
                s.run=(SELECT max(id) FROM runs) AND s.id>(SELECT chunked FROM runs WHERE id=s.run)
                """
        // Without the index: a change in it is found by the query that needs it, which may not have
        // run yet.
        let rows = try connection.prepare(
            """
            SELECT s.data FROM segments s WHERE
            EXISTS (SELECT 1 FROM chunks c WHERE s.run=c.run AND s.id>=c.first_segment
                AND s.id<c.first_segment+c.segments AND c.id<\(mark?.next["audio"] ?? .max)
                AND NOT EXISTS (SELECT 1 FROM batches b NOT INDEXED
                WHERE b.state=1 AND b.database=0 AND b.stream=2 AND c.id BETWEEN b.first AND b.last))
            OR (\(tail))
            """
        )
        while try rows.step() {
            if let serial = Serial.read(rows.data(0)) { segments.insert(serial) }
        }
        try readQuarantinedAudio(connection)
    }

    private mutating func readQuarantinedAudio(_ connection: borrowing Connection) throws {
        let rows = try connection.prepare(
            """
            SELECT s.data FROM batches b JOIN chunks c ON c.id BETWEEN b.first AND b.last
            JOIN segments s ON s.run=c.run AND s.id=c.first_segment+c.segments-1
            WHERE b.state=2 AND b.database=0 AND b.stream=2
            """
        )
        while try rows.step() {
            if let serial = Serial.read(rows.data(0)) { quarantinedSegments.insert(serial) }
        }
    }
}

/// The last records of a quarantined database that count; later ones were rewritten into the next.
struct Mark {
    var next: [String: Int64] = [:]
    var run: Int64
    var tail: Range<Int64>

    init?(of path: String, _ disk: SimulatedDisk) {
        guard let size = disk.size(path + "-mark"),
            let bytes = try? disk.read(path + "-mark", at: 0, count: Int(size))
        else { return nil }
        // Two identical lines, each with a checksum at its end.
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstIndex(of: "\n") else { return nil }
        let words = text[..<end].split(separator: " ").dropLast()
        let numbers = words.prefix(3).compactMap { Int64($0) }
        guard words.last == "end", numbers.count == 3, numbers[1] <= numbers[2] else {
            return nil
        }
        (run, tail) = (numbers[0], numbers[1]..<numbers[2])
        for word in words.dropFirst(3).dropLast() {
            let parts = word.split(separator: "=")
            if parts.count == 2 { next[String(parts[0])] = Int64(parts[1]) }
        }
    }
}
