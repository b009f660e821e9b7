// Damaged numbers in the live database, which SQLite's own check does not detect.
import Foundation
import Host
import SQLite
import Support
import Testing

import Queue
import QueueSupport
import Records

@Suite struct DamagedNumbersTests {
    /// Returns a database with ten sightings, 1 to 4 and 5 to 6 of them frozen, after a `change`.
    private func folder(_ change: String) throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.perform { writer in
            for last in [4, 6] as [Int64] {
                let range = try #require(try writer.pending(.beacons))
                _ = try #require(try writer.freeze(range, through: last))
            }
        }
        queue.close()
        let other = try Connection(path: folder.database, access: .readWrite)
        try other.execute(change)
        return folder
    }

    /// If trusted, such a range would crash the program, hide records forever, or block all others.
    @Test(arguments: [
        "UPDATE batches SET first=9 WHERE first=1",
        "UPDATE batches SET first=4611686018427387904, last=-4611686018427387904 WHERE first=1",
        "UPDATE batches SET state=7 WHERE first=1",
        "UPDATE batches SET database=9 WHERE first=1",
        "UPDATE batches SET clock_map=9 WHERE first=1",
        "UPDATE batches SET last=5000 WHERE first=5",
        "INSERT INTO gone VALUES (0,3,900,5000)",
        "INSERT INTO gone VALUES (0,3,10,9)",
        "UPDATE sequences SET next=5000000000 WHERE stream=3",
        "INSERT INTO losses VALUES (3,'dropped',9223372036854775807,-9,1,1,1,1,1,1,1,1,1)",
    ])
    func rangeThatCannotBe_isDamage_andItsRecordsWait(change: String) throws {
        let folder = try folder(change)
        let queue = try folder.queue()
        #expect(queue.setAside.count == 1)
        try queue.waitUntilSalvaged()
        let sightings = queue.statistics().first { $0.stream == .beacons }
        #expect(sightings?.pending == 10)
        #expect(try queue.losses().isEmpty)
        queue.close()
    }

    private static let figures = [
        "UPDATE batches SET state=1, done_boot=1, done_boottime=-9223372036854775808",
        "INSERT INTO traffic VALUES (\(SystemClock().wall().utcDay),9223372036854775807,9)",
    ]

    /// A damaged time or amount alone neither quarantines a database nor stops anything.
    @Test(arguments: figures)
    func figureThatCannotBe_stopsNothing(change: String) throws {
        let folder = try folder(change)
        let queue = try folder.queue()
        queue.accept(testSighting(0))
        queue.purge(retention: .seconds(60))
        queue.checkStorage()
        try queue.flushed()
        #expect(try queue.traffic().allSatisfy { $0.traffic.total >= 0 })
        _ = try queue.losses()
        #expect(queue.newest(.beacons) == 11)
        queue.close()
    }

    /// Audio that is in no chunk, in a database that is being quarantined.
    @Test(arguments: [
        "UPDATE segments SET frames=-5",
        "UPDATE segments SET frames=9223372036854775807",
        "UPDATE segments SET id=9223372036854775807 WHERE id=(SELECT max(id) FROM segments)",
        "UPDATE sequences SET next=9223372036854775807",
    ])
    func damagedSoundWithoutChunk_stopsNothing(change: String) throws {
        let (folder, copy) = (TemporaryFolder(), TemporaryFolder())
        let first = try folder.queue()
        let run = AudioRun(id: first.newRunID(), codec: .wav, rate: 16_000, device: "mic")
        first.begin(run)
        for number in 0..<3 { first.accept(segment(run, number)) }
        try first.flushed()
        for file in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.database + file,
                toPath: copy.database + file
            )
        }
        first.close()
        do {
            let other = try Connection(path: copy.database, access: .readWrite)
            try other.execute(change)
        }
        let queue = try copy.queue()
        try queue.waitUntilSalvaged()
        queue.accept(testSighting(0))
        #expect(try queue.flushed().newest(.beacons) == 1)
        queue.close()
    }

    /// Sends the audio before the damage and reports that more is lost; `from` is the first changed
    /// byte of the page.
    @Test(arguments: [0, 4])
    func soundWithoutChunk_goesAsFarAsItCanBeRead(from: Int) throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        var run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 16_000, device: "mic")
        run.chunkSegments = 600
        queue.begin(run)
        for number in 0..<60 { queue.accept(segment(run, number)) }
        try queue.flushed()
        try overwrite(
            "SELECT max(pageno) FROM dbstat WHERE name='segments' AND pagetype='leaf'",
            folder,
            from: from
        )
        try queue.damage()
        let range = try #require(queue.pending(.audio))
        var found: [Int] = []
        try queue.reader(of: range.database).chunks(range.first...range.last) {
            found.append($0.record.segments)
        }
        #expect(found.count == 1 && (1..<60).contains(found[0]), "\(found)")
        var reported: [String] = []
        try queue.reader().events(1...100) { _, kind, _, detail in
            if kind == "database_salvaged" { reported.append(detail) }
        }
        #expect(reported.count == 1 && reported[0].contains(#""lost":"unknown""#), "\(reported)")
        queue.close()
    }

    private func segment(_ run: AudioRun, _ number: Int) -> Segment {
        Segment(
            run: run.id,
            frames: 16_000,
            start: testStart.advanced(by: .seconds(number)),
            meanSquare: 0.01,
            data: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 100)
        )
    }

    /// If the end of the WAL was lost, a segment may continue in a page that another table uses by
    /// now.
    @Test func soundThatIsNotWhatWasRecorded_isNeverSent() throws {
        let folder = TemporaryFolder()
        let first = try folder.queue()
        record(first, segments: 3)
        first.close()
        try overwrite(
            "SELECT max(pageno) FROM dbstat WHERE name='segments' AND pagetype='overflow'",
            folder
        )
        let queue = try folder.queue()
        #expect(throws: SQLiteError.self) {
            let reader = try queue.reader()
            for id in 1...3 as ClosedRange<Int64> { _ = try reader.segment(id) }
        }
        try queue.damage()
        #expect(queue.pending(.audio) == nil)
        #expect(try queue.losses().map(\.records) == [1])
        queue.close()
    }

    /// Overwrites a page; `page` is the query for its number.
    private func overwrite(_ page: String, _ folder: TemporaryFolder, from: Int = 4) throws {
        let page = try {
            let database = try Connection(path: folder.database, access: .readWrite)
            try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return try #require(try database.integer(page))
        }()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        // The first four are the number of the next page.
        for index in from..<400 { bytes[Int(page - 1) * 1024 + index] = 0xA5 }
        try bytes.write(to: URL(fileURLWithPath: folder.database))
    }

    /// A chunk may be ten minutes long; until it ends, its recording has no chunk.
    @Test func longSoundWithoutChunk_waits() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        var run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 16_000, device: "mic")
        run.chunkSegments = 600
        queue.begin(run)
        for number in 0..<200 { queue.accept(segment(run, number)) }
        try queue.flushed()
        try queue.damage()
        let range = try #require(queue.pending(.audio))
        #expect(range.database == 1)
        var found: [Int] = []
        try queue.reader(of: 1).chunks(range.first...range.last) {
            found.append($0.record.segments)
        }
        #expect(found == [200])
        #expect(try queue.losses().isEmpty)
        queue.close()
    }
}
