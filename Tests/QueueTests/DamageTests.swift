import Foundation
import Host
@testable import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

/// Salvage: a damaged database is quarantined, its readable records return, and none returns twice.
@Suite struct DamageTests {
    /// A temporary read error of a page is not damage.
    @Test func check_distinguishesReadErrorFromDamage() {
        let page = "*** in database main ***\nPage 18: unable to get the page. error code="
        #expect(CheckResult(page + "266") == .unfinished)
        #expect(CheckResult(page + "522") == .damaged(page + "522"))
        #expect(CheckResult(page + "11") == .damaged(page + "11"))
        #expect(CheckResult("wrong # of entries") == .damaged("wrong # of entries"))
        #expect(CheckResult("ok") == .sound)
    }

    /// A random number generator with a seed, so each run is the same.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    static let sightings = 3000

    /// Fills a queue with records of each stream; 500 sightings are uploaded, 100 more are frozen.
    func fill(_ folder: TemporaryFolder) throws {
        let queue = try folder.queue()
        for number in 0..<Self.sightings { queue.accept(testSighting(number)) }
        for number in 0..<100 {
            queue.accept(
                Fix(
                    stamp: testStart.advanced(by: .seconds(number)),
                    mode: .threeDimensional,
                    latitude: 46.5,
                    longitude: Double(number) / 1e4
                )
            )
        }
        record(queue, segments: 43, bytes: 500)
        queue.accept(Event(.started, source: "gateway", stamp: testStart))
        try queue.perform { writer in
            let range = try #require(try writer.pending(.beacons))
            try writer.uploaded(try #require(try writer.freeze(range, through: 500)))
            let next = try #require(try writer.pending(.beacons))
            _ = try #require(try writer.freeze(next, through: 600))
            try writer.recordClock(testStart, synced: true)
        }
        queue.close()
    }

    func bytes(_ folder: TemporaryFolder) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: folder.database))
    }

    func write(_ data: Data, _ folder: TemporaryFolder) throws {
        try data.write(to: URL(fileURLWithPath: folder.database))
    }

    /// Overwrites a page.
    private func overwrite(
        _ page: Int64,
        of data: inout Data,
        _ database: borrowing Connection
    ) throws {
        let size = Int(try database.integer("PRAGMA page_size") ?? 4096)
        for index in 0..<size { data[Int(page - 1) * size + index] = 0xA5 }
    }

    private func setAside(_ folder: TemporaryFolder) throws -> [String] {
        try folder.files.filter { $0.contains(".corrupt-") && !$0.hasSuffix("-wal") }
    }

    /// Waits for the first salvage event and returns its detail.
    func salvage(_ queue: Queue) throws -> [String: Any] {
        let reader = try queue.reader()
        var found: [String: Any]?
        try waitUntil("the salvage is reported") {
            try reader.events(1...10_000) { _, kind, _, detail in
                guard kind == "database_salvaged" else { return }
                found =
                    try JSONSerialization.jsonObject(with: Data(detail.utf8)) as? [String: Any]
            }
            return found != nil
        }
        return try #require(found)
    }

    func ids(_ reader: Reader) throws -> [String] {
        var ids: [String] = []
        try reader.sightingsThere(1...100_000) { ids.append(try reader.id(.beacons, $0.sequence)) }
        return ids
    }

    /// Returns the ids of pending sightings in the older database, in order.
    func olderIDs(_ queue: Queue, of database: Int64 = 1) throws -> [String] {
        let reader = try queue.reader(of: database)
        var ids: [String] = []
        for range in try waiting(queue, .beacons, of: database) {
            try reader.sightings(range) { ids.append(try reader.id(.beacons, $0.sequence)) }
        }
        return ids
    }

    private func waiting(
        _ queue: Queue,
        _ stream: Records.Stream,
        of database: Int64
    ) throws -> [ClosedRange<Int64>] {
        try queue.perform { writer in
            let counters = writer.memory[Partition(stream, of: database)]
            let frozen = try writer.batches("WHERE state=0 AND database=?", database)
                .filter { $0.stream == stream }.map { $0.first...$0.last }
            guard counters.next > 1 else { return [] }
            let all = counters.frozen.free(in: 1...(counters.next - 1)) + frozen
            return all.sorted { $0.lowerBound < $1.lowerBound }
        }
    }

    @Test func notADatabase_isSetAside_andANewQueueTakesRecords() throws {
        for junk in [Data(), Data("not a database, whatever it is".utf8), Data(count: 100_000)] {
            let folder = TemporaryFolder()
            try write(junk, folder)
            let queue = try folder.queue()
            queue.accept(testSighting(1))
            #expect(try queue.flushed().pending(.beacons)?.last == 1)
            #expect(try salvage(queue)["records"] as? Int == 0)
            #expect(queue.setAside.count == 1)
            queue.close()
            let aside = try #require(try setAside(folder).first)
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: "\(folder.path)/\(aside)")) == junk
            )
        }
    }

    @Test func damagedPages_costOnlyWhatWasOnThem_andIDsStay() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        let before = try folder.queue()
        let known = Set(try ids(try before.reader()))
        before.close()
        // Overwrite a page in the middle of the sightings.
        var data = try bytes(folder)
        let database = try Connection(path: folder.database, access: .readOnly)
        let page = try #require(
            try database.integer(
                "SELECT pageno FROM dbstat WHERE name='sightings' AND pagetype='leaf' LIMIT 1 OFFSET 40"
            )
        )
        try overwrite(page, of: &data, database)
        try write(data, folder)

        let queue = try folder.queue()
        let detail = try salvage(queue)
        let lost = try #require(detail["lost"] as? Int)
        #expect(lost > 0)
        #expect(lost < 400)
        #expect(detail["beacons"] as? Int == Self.sightings - 500 - lost)
        #expect(detail["location"] as? Int == 100)
        #expect(detail["audio"] as? Int == 3)
        try checkSum(queue)
        let salvaged = try olderIDs(queue)
        #expect(salvaged.count == Self.sightings - 500 - lost)
        #expect(Set(salvaged).count == salvaged.count)
        #expect(Set(salvaged).isSubset(of: known))
        let losses = try queue.flushed().losses()
        #expect(losses.contains { $0.kind == .corrupt && $0.records == lost })
        queue.close()

        // Reopening does not salvage it again.
        let again = try folder.queue()
        #expect(try olderIDs(again) == salvaged)
        again.close()
    }

    @Test func removedFile_isRecordedAsLost_andBlocksNothing() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        var data = try bytes(folder)
        let database = try Connection(path: folder.database, access: .readOnly)
        let page = try #require(
            try database.integer("SELECT pageno FROM dbstat WHERE name='location' LIMIT 1")
        )
        try overwrite(page, of: &data, database)
        try write(data, folder)
        let before = try folder.queue()
        _ = try salvage(before)
        #expect(try waiting(before, .beacons, of: 1) == [501...600, 601...3000])
        before.close()
        for name in try setAside(folder) {
            try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
        }

        let queue = try folder.queue()
        queue.accept(testSighting(1))
        try waitUntil("the rest is counted as lost") {
            try queue.flushed().pending(.beacons)?.database == 0
        }
        for stream in queue.streams.streams { #expect(try queue.nextReady(stream) == nil) }
        let lost = try queue.losses().filter { $0.kind == .corrupt && $0.stream == .beacons }
        #expect(lost.map(\.records) == [2500])
        let beacons = try queue.flushed().statistics().first { $0.stream == .beacons }
        #expect(beacons?.evicted == 2500)
        #expect(beacons?.pending == 1)
        queue.close()
    }

    @Test func salvagedSound_isTheSameSound() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        var sound: [[UInt8]] = []
        let before = try folder.queue()
        let old = try before.reader()
        try old.chunksThere(1...10) { stored in
            let first = stored.record.firstSegment
            for index in 0..<Int64(stored.record.segments) {
                sound.append(try old.segment(first + index)?.data ?? [])
            }
        }
        before.close()
        var data = try bytes(folder)
        let database = try Connection(path: folder.database, access: .readOnly)
        let page = try #require(
            try database.integer("SELECT pageno FROM dbstat WHERE name='location' LIMIT 1")
        )
        try overwrite(page, of: &data, database)
        try write(data, folder)

        let queue = try folder.queue()
        // Audio recording continues while the old database is salvaged.
        record(queue, segments: 43, bytes: 700, from: 100)
        _ = try salvage(queue)
        _ = try queue.perform { _ in true }
        var salvaged: [[UInt8]] = []
        let older = try queue.reader(of: 1)
        for range in try waiting(queue, .audio, of: 1) {
            try older.chunks(range) { salvaged += try segments(of: $0, older) }
        }
        let reader = try queue.reader()
        var fresh: [Int] = []
        try reader.chunksThere(1...100) { fresh += try segments(of: $0, reader).map(\.count) }
        #expect(salvaged == sound)
        #expect(fresh.count == 45)
        #expect(fresh.allSatisfy { $0 == 700 })
        queue.close()
    }

    private func segments(of stored: Stored<Chunk>, _ reader: Reader) throws -> [[UInt8]] {
        let first = stored.record.firstSegment
        return try (0..<Int64(stored.record.segments)).map {
            try reader.segment(first + $0)?.data ?? []
        }
    }

    @Test func truncatedFile_givesBackWhatIsLeftOfIt() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        let data = try bytes(folder)
        try write(data.prefix(data.count * 3 / 4), folder)
        let queue = try folder.queue()
        let detail = try salvage(queue)
        #expect(detail["readable"] as? String == "yes")
        #expect((detail["records"] as? Int ?? 0) > 500)
        // There may have been audio in no chunk yet.
        #expect(detail["lost"] as? String == "unknown")
        #expect(try queue.losses().reduce(0) { $0 + $1.records } > 0)
        try checkSum(queue)
        queue.close()
    }

    @Test func emptyFileWithAJournal_givesBackWhatIsInTheJournal() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .milliseconds(1))
        for number in 0..<500 { queue.accept(testSighting(number)) }
        _ = try queue.perform { _ in true }
        // As after a power cut before the first checkpoint.
        let journal = try Data(contentsOf: URL(fileURLWithPath: folder.database + "-wal"))
        queue.close()
        for name in try folder.files {
            try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
        }
        try write(Data(), folder)
        try journal.write(to: URL(fileURLWithPath: folder.database + "-wal"))
        let again = try folder.queue()
        let detail = try salvage(again)
        #expect(detail["beacons"] as? Int == 500)
        again.close()
    }

    @Test func treeThatLeadsToALeafTwice_givesItsRowsOnce() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        var data = try bytes(folder)
        let database = try Connection(path: folder.database, access: .readOnly)
        func leaf(_ number: Int) throws -> Int {
            let sql = """
                SELECT pageno FROM dbstat WHERE name='sightings' AND pagetype='leaf' LIMIT 1
                OFFSET \(number)
                """
            return Int(try #require(try database.integer(sql)))
        }
        // One leaf page over another, like a wrong pointer: its rows seem to exist twice.
        let size = Int(try database.integer("PRAGMA page_size") ?? 4096)
        let (from, to) = (try leaf(30), try leaf(60))
        let page = data[((from - 1) * size)..<(from * size)]
        data.replaceSubrange(((to - 1) * size)..<(to * size), with: page)
        try write(data, folder)
        let queue = try folder.queue()
        if queue.setAside.isEmpty { queue.reportDamage("a reader", generation: queue.generation) }
        _ = try salvage(queue)
        let found = try olderIDs(queue)
        #expect(Set(found).count == found.count)
        #expect(found.count > 2000)
        queue.close()
    }

    @Test(arguments: 0..<60)
    func randomDamage_neverStopsTheQueue(_ seed: Int) throws {
        var numbers = Numbers(state: UInt64(seed) &* 7919 &+ 17)
        let folder = TemporaryFolder()
        try fill(folder)
        var data = try bytes(folder)
        if seed % 4 == 0 {
            data = data.prefix(Int.random(in: 1..<data.count, using: &numbers))
        }
        for _ in 0..<(1 << Int.random(in: 0...10, using: &numbers)) {
            let place = Int.random(in: 0..<data.count, using: &numbers)
            data[place] = UInt8.random(in: 0...255, using: &numbers)
        }
        try write(data, folder)
        let queue = try folder.queue()
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let figures = try queue.flushed().statistics()
        #expect((figures.first { $0.stream == .beacons }?.pending ?? 0) >= 100)
        // Damage that the check at the start cannot detect is found when the records are read.
        if (try? ids(queue.reader())) == nil {
            queue.reportDamage("read", generation: queue.generation)
        }
        try queue.flushed()
        if !queue.setAside.isEmpty { _ = try salvage(queue) }
        let found = try ids(try queue.reader()) + ((try? olderIDs(queue)) ?? [])
        #expect(found.count >= 100)
        #expect(Set(found).count == found.count)
        queue.close()
        let again = try folder.queue()
        again.accept(testSighting(1))
        _ = try again.perform { _ in true }
        again.close()
    }

    @Test func damageFoundWhileRunning_goesOnWithANewDatabase() throws {
        let folder = TemporaryFolder()
        try fill(folder)
        let queue = try folder.queue(commitInterval: .milliseconds(5))
        let epoch = queue.generation
        let run = AudioRun(id: queue.newRunID(), codec: .opus, rate: 16_000, device: "mic")
        queue.begin(run)
        queue.reportDamage("a reader found it so", generation: epoch)
        for number in 0..<15 {
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 32_000,
                    start: testStart.advanced(by: .seconds(2 * number)),
                    meanSquare: 0.1,
                    data: [1, 2, 3]
                )
            )
        }
        try waitUntil("the new database is there") { queue.generation == epoch + 1 }
        let detail = try salvage(queue)
        #expect(detail["beacons"] as? Int == Self.sightings - 500)
        #expect(detail["lost"] as? Int == 0)
        // A damage report about the previous database changes nothing.
        queue.reportDamage("again", generation: epoch)
        let sound = try queue.flushed().statistics().first { $0.stream == .audio }
        // The open run continued: its chunk exists beside the three salvaged ones.
        #expect((sound?.accepted ?? 0) >= 4)
        try checkSum(queue)
        queue.close()
    }
}
