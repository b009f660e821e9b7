import Foundation
import Host
import SQLite
import Support
import Testing

import Queue
import QueueSupport
import Records

/// Records longer than a database page: their checksums detect bytes of another record.
@Suite struct ChecksumTests {
    private func queue(_ folder: TemporaryFolder) throws -> Queue {
        try Queue(at: folder.database) {
            $0.userStreams = [DeclaredStream(name: "air", wire: "air")]
        }
    }

    private func put(_ queue: Queue, letter: String, count: Int) throws {
        let text = String(repeating: letter, count: count)
        let members = Array(#""text":"\#(text)""#.utf8)
        queue.put([UserRecord(stream: "air", stamp: testStart, members: members)]) { _ in }
        _ = try queue.flushed()
    }

    private func alter(_ folder: TemporaryFolder, _ sql: String) throws {
        try Connection(path: folder.database, access: .readWrite).execute(sql)
    }

    private func damage(_ row: Int64, _ table: String) -> SQLiteError {
        let message = "\(table): row \(row) is not what was stored"
        return SQLiteError(code: 11, message: message, statement: "")
    }

    @Test func longPayloadOfAnotherSighting_isDamage() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        for byte in 1...2 as ClosedRange<UInt8> {
            var sighting = testSighting(Int(byte))
            sighting.identity.kind = .manufacturer
            sighting.data = [UInt8](repeating: byte, count: 1650)
            queue.accept(sighting)
        }
        queue.accept(testSighting(3))
        _ = try queue.flushed()
        let reader = try queue.reader()
        var whole = 0
        try reader.sightings(1...3) { _ in whole += 1 }
        #expect(whole == 3)
        try alter(folder, "UPDATE sightings SET payload=(SELECT payload FROM sightings WHERE id=2)")
        // The second is unchanged; the third is short and has no checksum.
        try reader.sightings(2...3) { _ in whole += 1 }
        #expect(whole == 5)
        #expect(throws: damage(1, "sightings")) { try reader.sightings(1...1) { _ in } }
        queue.close()
    }

    @Test func longRecordOfTheUser_withBytesOfAnother_isDamage() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        for letter in ["a", "b"] { try put(queue, letter: letter, count: 3000) }
        let kind = try #require(queue.streams[name: "air"])
        let reader = try queue.reader()
        try reader.rows(kind, 1...2) { _ in }
        let first = "(SELECT data FROM \(kind.table) WHERE id=1)"
        try alter(folder, "UPDATE \(kind.table) SET data=\(first) WHERE id=2")
        try reader.rows(kind, 1...1) { _ in }
        #expect(throws: damage(2, kind.table)) { try reader.rows(kind, 2...2) { _ in } }
        queue.close()
    }

    /// SQLite's error for a full disk when it opens the WAL index.
    @Test func journalIndexWithoutRoom_isAFullDisk() {
        #expect(SQLiteError(code: 4874, message: "disk I/O error", statement: "").isFull)
        #expect(!SQLiteError(code: 10, message: "disk I/O error", statement: "").isFull)
    }
}
