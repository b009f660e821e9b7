import Foundation
import Host
import SQLite
import Support
import Testing

import Queue
import QueueSupport
import Records

/// User streams across a replaced database: a record never changes its stream.
@Suite struct UserStreamHistoryTests {
    private func queue(
        _ folder: TemporaryFolder,
        _ names: [String],
        byHand: Bool = false
    ) throws -> Queue {
        try Queue(at: folder.database) {
            $0.userStreams = names.map { DeclaredStream(name: $0, wire: $0) }
            $0.isTurnedByHand = byHand
        }
    }

    private func put(_ queue: Queue, _ stream: String, _ count: Int) {
        let records = (1...count).map {
            UserRecord(
                stream: stream,
                stamp: testStart,
                members: Array(#""\#(stream)":\#($0)"#.utf8)
            )
        }
        queue.put(records) { _ in }
    }

    /// Returns the pending records of a stream, as an upload would read them.
    private func waiting(_ queue: Queue, _ name: String) throws -> [String] {
        let stream = try #require(queue.streams[name: name]?.stream)
        guard let range = queue.pending(stream) else { return [] }
        let reader = try queue.reader(of: range.database)
        var found: [String] = []
        try reader.rows(reader.kind(of: range.stream), range.first...range.last) { stored in
            if case .bytes(let bytes) = stored.record.values[1] {
                found.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        return found
    }

    private func waitForSalvage(_ queue: Queue, _ name: String) throws {
        try waitUntil("the salvage") {
            guard let stream = queue.streams[name: name]?.stream else { return false }
            return queue.pending(stream)?.database == 1
        }
    }

    /// Pending records of a removed stream are sent under its last wire name.
    @Test func streamDeclaredNoMore_keepsItsNameOnTheWire() throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(at: folder.database)
        settings.userStreams = [DeclaredStream(name: "air", wire: "site_air")]
        let before = try Queue(settings: settings)
        put(before, "air", 3)
        before.close()
        settings.userStreams = []
        let after = try Queue(settings: settings)
        defer { after.close() }
        #expect(after.streams[name: "air"]?.wire == "site_air")
        // If it is declared again under another name, all its records get that name.
        after.declare([DeclaredStream(name: "air", wire: "harbour_air")])
        after.declare([])
        #expect(after.streams[name: "air"]?.wire == "harbour_air")
        #expect(try waiting(after, "air").count == 3)
    }

    /// A stream is removed from the configuration and the database is damaged: both streams keep
    /// their records.
    @Test func damage_mixesNoStreams_andForgetsNone() throws {
        let folder = TemporaryFolder()
        let before = try queue(folder, ["air", "bees"])
        put(before, "air", 3)
        put(before, "bees", 2)
        try before.flushed()
        before.close()
        let after = try queue(folder, ["bees"])
        defer { after.close() }
        after.reportDamage("a test", generation: after.generation)
        try waitUntil("the new database") { !after.setAside.isEmpty }
        try waitForSalvage(after, "bees")
        #expect(try waiting(after, "bees") == [#""bees":1"#, #""bees":2"#])
        try waitForSalvage(after, "air")
        #expect(try waiting(after, "air") == [#""air":1"#, #""air":2"#, #""air":3"#])
    }

    /// The same, with damage that is found at the start.
    @Test func damageAtTheStart_mixesNoStreams_andForgetsNone() throws {
        let folder = TemporaryFolder()
        let before = try queue(folder, ["air", "bees"])
        put(before, "air", 3)
        put(before, "bees", 2)
        before.accept(Event(.started, source: "gateway", stamp: testStart))
        try before.flushed()
        before.close()
        try damage(folder, "events")
        let after = try queue(folder, ["bees", "cold"])
        defer { after.close() }
        #expect(after.setAside.count == 1)
        put(after, "cold", 1)
        try after.flushed()
        try waitForSalvage(after, "bees")
        #expect(try waiting(after, "bees") == [#""bees":1"#, #""bees":2"#])
        #expect(try waiting(after, "air") == [#""air":1"#, #""air":2"#, #""air":3"#])
        #expect(try waiting(after, "cold") == [#""cold":1"#])
    }

    private func damage(_ folder: TemporaryFolder, _ table: String) throws {
        let database = try Connection(path: folder.database, access: .readOnly)
        let size = Int(try #require(try database.integer("PRAGMA page_size")))
        let page = try database.integer(
            "SELECT pageno FROM dbstat WHERE name='\(table)' LIMIT 1"
        )
        let start = (Int(try #require(page)) - 1) * size
        var data = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        for index in start..<(start + size) { data[index] = 0xA5 }
        try data.write(to: URL(fileURLWithPath: folder.database))
    }

    /// Records in memory when the database was replaced go to the right stream and block nothing.
    @Test func recordsInMemory_goIntoTheirOwnStream() throws {
        let folder = TemporaryFolder()
        let before = try queue(folder, ["air", "bees"])
        try before.flushed()
        before.close()
        let after = try queue(folder, ["bees"], byHand: true)
        defer { after.close() }
        put(after, "bees", 1)
        after.reportDamage("a test", generation: after.generation)
        after.turn()
        after.turn()
        #expect(after.isAllOnDisk)
        #expect(try waiting(after, "bees") == [#""bees":1"#])
    }
}
