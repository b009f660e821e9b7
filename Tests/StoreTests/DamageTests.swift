import Board
import Foundation
import Host
import Store
import Testing

/// A damaged database is set aside, what can be read of it comes back, and nothing comes twice.
@Suite struct DamageTests {
    /// A numbered source of numbers, the same at each run.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    private static let sightings = 3000

    /// A queue with something of each stream; 500 sightings are uploaded, 100 more are frozen.
    private func fill(_ folder: TemporaryFolder) throws {
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
            try writer.noteClock(testStart, synced: true)
        }
        queue.close()
    }

    private func bytes(_ folder: TemporaryFolder) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: folder.database))
    }

    private func write(_ data: Data, _ folder: TemporaryFolder) throws {
        try data.write(to: URL(fileURLWithPath: folder.database))
    }

    /// Fills a page with something else.
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

    /// The detail of the first event of a salvage, once it is there.
    private func salvage(_ queue: Queue) throws -> [String: Any] {
        let reader = try queue.reader()
        var found: [String: Any]?
        try waitUntil("the salvage is told") {
            try reader.events(1...10_000) { _, kind, _, detail in
                guard kind == "database_salvaged" else { return }
                found =
                    try JSONSerialization.jsonObject(with: Data(detail.utf8)) as? [String: Any]
            }
            return found != nil
        }
        return try #require(found)
    }

    private func ids(_ reader: Reader) throws -> [String] {
        try reader.refreshIDs()
        var ids: [String] = []
        try reader.sightings(1...100_000) { ids.append(reader.recordIDs.id(.beacons, $0.sequence)) }
        return ids
    }

    @Test func notADatabase_isSetAside_andANewQueueTakesRecords() throws {
        for junk in [Data(), Data("not a database, whatever it is".utf8), Data(count: 100_000)] {
            let folder = try TemporaryFolder()
            try write(junk, folder)
            let queue = try folder.queue()
            queue.accept(testSighting(1))
            #expect(try queue.perform { try $0.pending(.beacons)?.last } == 1)
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
        let folder = try TemporaryFolder()
        try fill(folder)
        let before = try folder.queue()
        let known = Set(try ids(try before.reader()))
        before.close()
        // A page in the middle of the sightings: filled with something else.
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
        try checkSum(folder, queue)
        let salvaged = try ids(try queue.reader())
        #expect(salvaged.count == Self.sightings - 500 - lost)
        #expect(Set(salvaged).count == salvaged.count)
        #expect(Set(salvaged).isSubset(of: known))
        let losses = try queue.perform { try $0.losses() }
        #expect(losses.contains { $0.kind == .corrupt && $0.records == lost })
        // Dated like before: the clock came along.
        let figures = try queue.perform { try $0.statistics() }
        #expect(figures.first { $0.stream == .beacons }?.uploaded == 0)
        queue.close()

        // Opened again, it is not salvaged again.
        let again = try folder.queue()
        #expect(try ids(try again.reader()) == salvaged)
        again.close()
    }

    @Test func salvagedSound_isTheSameSound() throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        var sound: [[UInt8]] = []
        let before = try folder.queue()
        let old = try before.reader()
        try old.chunks(1...10) { stored in
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
        // Sound goes on while the old one is salvaged.
        record(queue, segments: 43, bytes: 700, from: 100)
        _ = try salvage(queue)
        _ = try queue.perform { _ in true }
        let reader = try queue.reader()
        var salvaged: [[UInt8]] = []
        var fresh: [Int] = []
        try reader.chunks(1...100) { stored in
            let first = stored.record.firstSegment
            for index in 0..<Int64(stored.record.segments) {
                let data = try reader.segment(first + index)?.data ?? []
                if data.count == 500 { salvaged.append(data) } else { fresh.append(data.count) }
            }
        }
        #expect(salvaged == sound)
        #expect(fresh.count == 45)
        #expect(fresh.allSatisfy { $0 == 700 })
        queue.close()
    }

    @Test func truncatedFile_givesBackWhatIsLeftOfIt() throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        let data = try bytes(folder)
        try write(data.prefix(data.count * 3 / 4), folder)
        let queue = try folder.queue()
        let detail = try salvage(queue)
        #expect(detail["readable"] as? String == "yes")
        #expect((detail["records"] as? Int ?? 0) > 500)
        #expect((detail["lost"] as? Int ?? 0) > 0)
        try checkSum(folder, queue)
        queue.close()
    }

    @Test func emptyFileWithAJournal_givesBackWhatIsInTheJournal() throws {
        let folder = try TemporaryFolder()
        let queue = try folder.queue(commitInterval: .milliseconds(1))
        for number in 0..<500 { queue.accept(testSighting(number)) }
        _ = try queue.perform { _ in true }
        // As a power cut leaves it that came before the first checkpoint.
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
        let folder = try TemporaryFolder()
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
        // One leaf over another, as a wrong pointer would have it: its rows seem to be there twice.
        let size = Int(try database.integer("PRAGMA page_size") ?? 4096)
        let (from, to) = (try leaf(30), try leaf(60))
        let page = data[((from - 1) * size)..<(from * size)]
        data.replaceSubrange(((to - 1) * size)..<(to * size), with: page)
        try write(data, folder)
        let queue = try folder.queue()
        if queue.setAside.isEmpty { queue.reportDamage("a reader", epoch: queue.epoch) }
        _ = try salvage(queue)
        let found = try ids(try queue.reader())
        #expect(Set(found).count == found.count)
        #expect(found.count > 2000)
        queue.close()
    }

    @Test(arguments: 0..<60)
    func randomDamage_neverStopsTheQueue(_ seed: Int) throws {
        var numbers = Numbers(state: UInt64(seed) &* 7919 &+ 17)
        let folder = try TemporaryFolder()
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
        let queue: Queue
        do {
            queue = try folder.queue()
        } catch is SchemaTooNew {
            // The number of the version was hit: refused, and left alone.
            #expect(try bytes(folder) == data)
            return
        }
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let figures = try queue.perform { try $0.statistics() }
        #expect((figures.first { $0.stream == .beacons }?.pending ?? 0) >= 100)
        // Damage that no check at the start can see shows when the records are read.
        let reader = try queue.reader()
        if (try? ids(reader)) == nil { queue.reportDamage("read", epoch: queue.epoch) }
        if !queue.setAside.isEmpty { _ = try salvage(queue) }
        let found = try ids(try queue.reader())
        #expect(found.count >= 100)
        #expect(Set(found).count == found.count)
        queue.close()
        let again = try folder.queue()
        again.accept(testSighting(1))
        _ = try again.perform { _ in true }
        again.close()
    }

    @Test func damageFoundWhileRunning_goesOnWithANewDatabase() throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        let queue = try folder.queue(commitInterval: .milliseconds(5))
        let epoch = queue.epoch
        let run = AudioRun(id: queue.newRunID(), codec: .opus, rate: 16_000, device: "mic")
        queue.begin(run)
        queue.reportDamage("a reader found it so", epoch: epoch)
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
        try waitUntil("the new database is there") { queue.epoch == epoch + 1 }
        let detail = try salvage(queue)
        #expect(detail["beacons"] as? Int == Self.sightings - 500)
        #expect(detail["lost"] as? Int == 0)
        // A word about the database before is no news.
        queue.reportDamage("again", epoch: epoch)
        let sound = try queue.perform { try $0.statistics() }.first { $0.stream == .audio }
        // The run that was open went on: its chunk is there beside the three salvaged ones.
        #expect((sound?.accepted ?? 0) >= 4)
        try checkSum(folder, queue)
        queue.close()
    }
}
