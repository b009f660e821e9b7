// Invariants of the tables of a database, in SQL.
internal import Queue
internal import Records
internal import SQLite

/// Checks one database; throws a Violation for an inconsistency.
struct TableAudit {
    private let database: OpenDatabase
    private let streams: [StreamKind]

    init(_ database: OpenDatabase, _ streams: [StreamKind]) {
        self.database = database
        self.streams = streams
    }

    /// Checks all tables; `isDamaged`: some may be older than the rest, which the program finds as
    /// it reads records.
    func check(isDamaged: Bool) throws {
        try checkAudio()
        if !isDamaged {
            try checkRows()
            try checkChunks()
        }
        try none(
            "told more than lost",
            "SELECT stream FROM losses WHERE told>records OR records<=0"
        )
        try none(
            "two batches with one key",
            "SELECT uuid FROM batches GROUP BY uuid HAVING count(*)>1"
        )
        try none(
            "a batch of a clock map to come",
            "SELECT id FROM batches WHERE clock_map>(SELECT ifnull(max(id), 0) FROM clock_map)"
        )
    }

    private func checkRows() throws {
        try checkNumbers()
        for kind in streams { try check(kind) }
        try none(
            "a sighting without its beacon",
            "SELECT s.id FROM sightings s LEFT JOIN beacons b ON b.id=s.beacon WHERE b.id IS NULL"
        )
    }

    /// Checks that the next row numbers are above all existing ones.
    private func checkNumbers() throws {
        let tables = [
            ("segments", "segments"), ("runs", "runs"), ("beacons", "beacons"),
            ("batches", "batches"), ("databases", "databases"),
        ]
        for (name, table) in tables {
            try none(
                "the next of \(name) is there already",
                """
                SELECT id FROM \(table) WHERE id>=(SELECT next FROM numbers WHERE name='\(name)')
                """
            )
        }
    }

    // MARK: One stream

    private func check(_ kind: StreamKind) throws {
        let number = Int64(kind.stream.number)
        let rows = try ranges("SELECT id, id FROM \(kind.table)")
        for partition in try partitions(number) {
            let next =
                try database.connection.integer(
                    "SELECT next FROM sequences WHERE database=? AND stream=?",
                    partition,
                    number
                ) ?? 1
            let key = "WHERE database=? AND stream=?"
            let gone = try ranges("SELECT first, last FROM gone \(key)", partition, number)
            let batches = try ranges("SELECT first, last FROM batches \(key)", partition, number)
            let isSound = kind.stream == .audio && partition == 0
            let held = isSound ? try ranges("SELECT first, last FROM held") : []
            try apart(gone + batches + held, "\(kind.stream) of \(partition)", below: next)
            guard partition == 0 else { continue }
            try checkRows(rows, gone: gone, below: next, kind)
            try checkPendingBytes(kind)
        }
    }

    /// Checks the sum that decides which stream is evicted against the rows.
    private func checkPendingBytes(_ kind: StreamKind) throws {
        let isHeld = "EXISTS (SELECT 1 FROM held WHERE r.id BETWEEN first AND last)"
        let isPending = kind.stream == .audio ? "AND NOT \(isHeld)" : ""
        if kind.stream == .audio {
            try none(
                "the held rows of audio hold other bytes",
                """
                SELECT next FROM numbers WHERE name='held_bytes'
                AND next<>(SELECT ifnull(sum(\(kind.storedBytes)), 0) FROM chunks r WHERE \(isHeld))
                """
            )
        }
        try none(
            "the rows of \(kind.stream) hold other pending bytes",
            """
            SELECT pending_bytes FROM sequences WHERE database=0 AND stream=\(kind.stream.number)
            AND pending_bytes<>(SELECT ifnull(sum(\(kind.storedBytes)), 0) FROM \(kind.table) r
            WHERE NOT EXISTS (SELECT 1 FROM batches WHERE database=0 AND state>0
            AND stream=\(kind.stream.number) AND r.id BETWEEN first AND last) \(isPending))
            """
        )
    }

    private func partitions(_ stream: Int64) throws -> [Int64] {
        let rows = try database.connection.prepare("SELECT database FROM sequences WHERE stream=?")
        try rows.bind(stream, at: 1)
        var found: [Int64] = []
        while try rows.step() { found.append(rows.required(0)) }
        return found
    }

    /// Checks that ranges neither overlap nor reach unassigned numbers.
    private func apart(_ ranges: [ClosedRange<Int64>], _ name: String, below next: Int64) throws {
        var end: Int64 = 0
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            guard range.lowerBound > end else {
                throw Violation("tables", "\(name): \(range) is in two places (up to \(end))")
            }
            end = range.upperBound
        }
        guard end < next else {
            throw Violation("tables", "\(name): \(end) is settled, and \(next) comes next")
        }
    }

    /// Checks that each number below `next` has a row, or is marked as deleted.
    private func checkRows(
        _ rows: [ClosedRange<Int64>],
        gone: [ClosedRange<Int64>],
        below next: Int64,
        _ kind: StreamKind
    ) throws {
        var expected: Int64 = 1
        for range in (rows + gone).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            guard range.lowerBound == expected else {
                let words =
                    range.lowerBound < expected ? "is gone, and has a row" : "comes after a hole"
                throw Violation("tables", "\(kind.stream): \(range) \(words), expected \(expected)")
            }
            expected = range.upperBound + 1
        }
        guard expected == next else {
            throw Violation("tables", "\(kind.stream): rows up to \(expected - 1), next is \(next)")
        }
        try none(
            "a record of \(kind.stream) without a seed for its id",
            """
            SELECT id FROM \(kind.table) WHERE id<ifnull((SELECT min(first) FROM id_seeds
            WHERE stream=\(kind.stream.number)), 1 << 60)
            """
        )
    }

    // MARK: Audio

    private func checkChunks() throws {
        try none(
            "a chunk of a run that is not there",
            "SELECT c.id FROM chunks c LEFT JOIN runs r ON r.id=c.run WHERE r.id IS NULL"
        )
        try none(
            "a chunk without all its segments",
            """
            SELECT c.id FROM chunks c WHERE c.segments<>(SELECT count(*) FROM segments s
            WHERE s.run=c.run AND s.id>=c.first_segment AND s.id<c.first_segment+c.segments)
            """
        )
    }

    private func checkAudio() throws {
        // Two segments more than the chunks' may stay: those the next chunk shares, and a pre-roll.
        try none(
            "sound that no chunk has",
            """
            SELECT s.run FROM segments s WHERE s.run<>(SELECT max(id) FROM runs)
            AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.run=s.run AND s.id>=c.first_segment-1
            AND s.id<c.first_segment+c.segments) GROUP BY s.run HAVING count(*)>3
            """
        )
    }

    // MARK: SQL

    private func ranges(_ sql: String, _ values: Int64...) throws -> [ClosedRange<Int64>] {
        let rows = try database.connection.prepare(sql)
        try rows.bind(values, from: 1)
        var ranges: [ClosedRange<Int64>] = []
        while try rows.step() {
            guard rows.required(0) <= rows.required(1) else {
                throw Violation("tables", "an empty range: \(sql)")
            }
            ranges.append(rows.required(0)...rows.required(1))
        }
        return ranges
    }

    private func none(_ words: String, _ sql: String) throws {
        let rows = try database.connection.prepare(sql)
        guard try rows.step() else { return }
        throw Violation("tables", "\(words): \(rows.text(0))")
    }
}
