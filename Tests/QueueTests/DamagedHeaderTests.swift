// Changed bytes in a database header: no record turns into another one.
import Foundation
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

extension DamageTests {
    @Test(arguments: [0, 1, 2, 4, 9, 99, 161, 255, 5000])
    func versionThatTheTablesDoNotHave_isDamage(_ version: Int) throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(at: folder.database)
        settings.userStreams = [DeclaredStream(name: "air", wire: "air")]
        try Queue(settings: settings).close()
        try fill(folder)
        let ids = try Array(ids(Reader(settings)).dropFirst(500))
        #expect(ids.count == Self.sightings - 500)
        try Connection(path: folder.database, access: .readWrite)
            .execute("PRAGMA user_version=\(version)")
        let queue = try folder.queue()
        queue.accept(testSighting(1))
        try queue.flushed()
        _ = try salvage(queue)
        #expect(try folder.files.contains { $0.contains(".corrupt-") })
        // All but the uploaded ones, under their original ids.
        #expect(try olderIDs(queue) == ids)
        queue.close()
    }

    /// A changed header byte (sqlite.org/fileformat.html, section 1.3) neither changes nor loses a
    /// record.
    ///
    /// Excludes the bytes without which nothing can be read.
    @Test func headerThatChanged_leavesEachRecordAsItWas() throws {
        let filled = TemporaryFolder()
        try fill(filled)
        let settings = QueueSettings(at: filled.database)
        let ids = try Array(ids(Reader(settings)).dropFirst(500))
        let data = try bytes(filled)
        func waitingIDs(_ queue: Queue) throws -> [String] {
            // Without the uploaded ones and the new one.
            try self.ids(queue.reader()).dropFirst(500).dropLast()
        }
        for byte in 24..<100 where ![28, 31, 47, 59].contains(byte) {
            let folder = TemporaryFolder()
            var changed = data
            changed[byte] ^= 1 << UInt8(byte % 8)
            try write(changed, folder)
            let queue = try folder.queue()
            queue.accept(testSighting(1))
            try queue.flushed()
            let isAside = try folder.files.contains { $0.contains(".corrupt-") }
            if isAside { _ = try salvage(queue) }
            let waiting = isAside ? try olderIDs(queue) : try waitingIDs(queue)
            #expect(waiting == ids, "byte \(byte)")
            queue.close()
        }
    }
}
