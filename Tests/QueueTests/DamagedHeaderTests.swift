// What stands in the header of a database, changed: no record becomes another one.
import Foundation
@testable import Queue
import Records
import SQLite
import Support
import Testing

extension DamageTests {
    @Test(arguments: [0, 2, 3, 5, 9, 99, 161, 255, 5000])
    func versionThatTheTablesDoNotHave_isDamage(_ version: Int) throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(path: folder.database, bootID: "boot", appVersion: "test")
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
        // All but those that were uploaded, under the ids that they had.
        #expect(try olderIDs(queue) == ids)
        queue.close()
    }

    /// A changed byte of the header (sqlite.org/fileformat.html, section 1.3), but for those without which nothing can be
    /// read, makes no record another one, and none is missing.
    @Test func headerThatChanged_leavesEachRecordAsItWas() throws {
        let filled = TemporaryFolder()
        try fill(filled)
        let settings = QueueSettings(path: filled.database, bootID: "boot", appVersion: "test")
        let ids = try Array(ids(Reader(settings)).dropFirst(500))
        let data = try bytes(filled)
        func waitingIDs(_ queue: Queue) throws -> [String] {
            // Without those that were uploaded, and the new one.
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
