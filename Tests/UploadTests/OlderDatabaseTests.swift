import Foundation
import Host
import Queue
import Records
import Support
import Testing
import Upload

/// A quarantined database that cannot be read any more blocks nothing else.
@Suite struct OlderDatabaseTests {
    /// Makes a bench whose older database has pending fixes; `isFrozen` puts some into a batch.
    private func fixture(isFrozen: Bool) throws -> UploadFixture {
        let fixture = try UploadFixture { _ in .ok }
        fixture.add(20)
        try fixture.queue.flushed()
        if isFrozen {
            let range = try #require(fixture.queue.pending(.location))
            _ = try fixture.queue.perform { try $0.freeze(range, through: 10) }
        }
        fixture.queue.reportDamage("a test", generation: fixture.queue.generation)
        try waitUntil("the salvage") { fixture.queue.pending(.location)?.database == 1 }
        fixture.add(5)
        fixture.addSightings(7)
        return fixture
    }

    /// A person deleted the file: its records are recorded as lost, the others are sent.
    @Test(arguments: [false, true])
    func deletedFile_isReportedAndAbandoned(isFrozen: Bool) throws {
        let fixture = try fixture(isFrozen: isFrozen)
        defer { fixture.finish() }
        for path in fixture.queue.setAside.map(\.path) {
            try FileManager.default.removeItem(atPath: path)
        }
        _ = try fixture.sync()
        #expect(try fixture.sync())
        let sent = try fixture.server.requests.map { try SentBatch($0) }
        #expect(
            sent.filter { $0.stream == "places" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 5
        )
        #expect(
            sent.filter { $0.stream == "beacons" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 7
        )
        let lost = try fixture.queue.losses().filter {
            $0.stream == .location && $0.kind == .corrupt
        }
        #expect(lost.map(\.records) == [20])
    }

    /// Its file exists but cannot be opened: its records wait, all others are sent, and the live
    /// database is not blamed.
    @Test(arguments: [false, true])
    func fileThatCannotBeOpened_holdsUpNothingElse(isFrozen: Bool) throws {
        let fixture = try fixture(isFrozen: isFrozen)
        defer { fixture.finish() }
        let path = try #require(fixture.queue.setAside.first?.path)
        let generation = fixture.queue.generation
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away-wal")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(try fixture.sync() == false)
        let sent = try fixture.server.requests.map { try SentBatch($0) }
        #expect(
            sent.filter { $0.stream == "beacons" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 7
        )
        #expect(
            sent.filter { $0.stream == "places" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 5
        )
        #expect(fixture.queue.generation == generation)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".away-wal", toPath: path)
        #expect(try fixture.sync())
        #expect(try fixture.queue.losses().isEmpty)
    }

    /// An older database was drained and the live one is quarantined too: it may get the number of
    /// the first.
    @Test func secondReplacement_sendsEachRecordOnce() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        for count in [20, 5] {
            fixture.add(count)
            try fixture.queue.flushed()
            fixture.queue.reportDamage("a test", generation: fixture.queue.generation)
            try waitUntil("the salvage") {
                try fixture.queue.unsent(.location, through: 0) == count
                    && !fixture.queue.setAside.map(\.waiting).contains(nil)
            }
            #expect(try fixture.sync())
        }
        let sent = try fixture.server.requests.flatMap { try ids($0, "places") }
        #expect(sent.count == 25)
        #expect(Set(sent).count == 25)
    }

    private func ids(_ request: Request, _ stream: String) throws -> [String] {
        let object = try JSONSerialization.jsonObject(with: gunzip(request.body))
        let content = try #require(object as? [String: Any])
        guard content["stream_name"] as? String == stream else { return [] }
        return (content["data"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
    }
}
