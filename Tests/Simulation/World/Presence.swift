// What the databases of a device hold, read without the gateway's code.
internal import Records
internal import SimulatedDisk
internal import SQLite

/// The serial numbers of records and segments that are on a disk, and what the ledger says.
struct Presence {
    var records: Set<Int> = []
    var segments: Set<Int> = []
    /// Records in the ledger, by the number of the stream.
    var ledger: [Int: Int] = [:]
    /// Records that were given up, as they could not be read.
    var givenUp = 0
    /// Records in batches that are frozen and not judged.
    var ready: Set<Int> = []
    /// Records in quarantine, and the last segments of chunks there.
    var quarantined: Set<Int> = []
    var quarantinedSegments: Set<Int> = []
    /// A database that was set aside is there, and not done with.
    var hasOlder = false
    /// Names of databases that were set aside and whose books a newer one has taken over.
    private var adopted: Set<String> = []
    /// What of the live database could not be read, and why.
    var unreadable: String?
    /// Records behind a page that cannot be read are looked for one by one, too.
    private var isThorough = false

    /// Of a damaged database as much as there is; `isThorough`: behind a page that cannot be read, too.
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

    /// Those that were set aside.
    private mutating func readOlder(
        _ disk: SimulatedDisk,
        _ streams: [StreamKind],
        _ files: OlderFiles
    ) {
        let prefix = Device.path + ".corrupt-"
        let paths = disk.files.filter {
            $0.hasPrefix(prefix) && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
                && !$0.hasSuffix("-mark")
        }
        guard !paths.isEmpty else { return }
        hasOlder = true
        // The newest first: it may have taken over the books of those before it.
        for path in paths.sorted(by: >) {
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
            // Its ledger is taken over with its books, and a disk that refuses to give them may delay that.
            let name = path.split(separator: "/").last.map { String($0) } ?? path
            guard !adopted.contains(name) else { continue }
            ledger.merge(older.ledger) { $0 + $1 }
            adopted.formUnion(older.adopted)
        }
    }

    private mutating func readAdopted(_ live: borrowing Connection) throws {
        // As the program reads it: an index whose bytes were changed is never looked at.
        let names = try live.prepare("SELECT name FROM databases NOT INDEXED")
        while try names.step() { adopted.insert(names.text(0)) }
    }

    private mutating func readLedger(_ live: borrowing Connection) throws {
        let rows = try live.prepare("SELECT stream, sum(records) FROM losses GROUP BY stream")
        while try rows.step() { ledger[Int(rows.required(0))] = Int(rows.required(1)) }
        let unread = "SELECT sum(records) FROM losses WHERE kind='corrupt'"
        givenUp = Int(try live.integer(unread) ?? 0)
    }

    /// The column that tells which record it is.
    static func column(_ stream: Stream) -> String {
        switch stream {
        case .beacons: "payload"
        // What a page that was written in part has instead is no place of ours.
        case .location: "CASE WHEN longitude_e7=2*latitude_e7 AND mode=3 THEN latitude_e7 END"
        case .events: "detail"
        case .surveys: "report"
        default: "data"
        }
    }

    /// Of the live database only what is neither gone nor uploaded counts.
    private mutating func read(
        _ kind: StreamKind,
        _ connection: borrowing Connection,
        _ mark: Mark?
    ) throws {
        if case .sound = kind.shape { return try readSound(connection, mark) }
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

    /// Reads a table number by number: a page that cannot be read says nothing of those behind it.
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

    /// The batches of a stream by their first numbers.
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
        default:
            let members = row.isText(0) ? Array(row.text(0).utf8) : row.data(0)
            return WireJSON(Array("{".utf8) + members + Array("}".utf8))?["n"]?.integer
        }
    }

    /// Segments that a chunk has, or that will be in one.
    private mutating func readSound(_ connection: borrowing Connection, _ mark: Mark?) throws {
        let tail =
            mark.map {
                "s.run=\($0.run) AND s.id>=\($0.tail.lowerBound) AND s.id<\($0.tail.upperBound)"
            } ?? """
                s.run=(SELECT max(id) FROM runs) AND s.id>(SELECT chunked FROM runs WHERE id=s.run)
                """
        // Without the index: what of it was changed is found by the question that needs it, which need not have come.
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
        try readQuarantinedSound(connection)
    }

    private mutating func readQuarantinedSound(_ connection: borrowing Connection) throws {
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

/// How far a database that was set aside counts; what it has beyond was written once more, into the next one.
private struct Mark {
    var next: [String: Int64] = [:]
    var run: Int64
    var tail: Range<Int64>

    init?(of path: String, _ disk: SimulatedDisk) {
        guard let size = disk.size(path + "-mark"),
            let bytes = try? disk.read(path + "-mark", at: 0, count: Int(size))
        else { return nil }
        // Two lines that say the same, each with its sum at its end.
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
