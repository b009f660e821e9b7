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
    private func bench(isFrozen: Bool) throws -> UploadBench {
        let bench = try UploadBench { _ in .ok }
        bench.add(20)
        try bench.queue.flushed()
        if isFrozen {
            let range = try #require(bench.queue.pending(.location))
            _ = try bench.queue.perform { try $0.freeze(range, through: 10) }
        }
        bench.queue.reportDamage("a test", generation: bench.queue.generation)
        try waitUntil("the salvage") { bench.queue.pending(.location)?.database == 1 }
        bench.add(5)
        bench.addSightings(7)
        return bench
    }

    /// A person deleted the file: its records are recorded as lost, the others are sent.
    @Test(arguments: [false, true])
    func fileThatWasDeleted_isToldAndGivenUp(isFrozen: Bool) throws {
        let bench = try bench(isFrozen: isFrozen)
        defer { bench.finish() }
        for path in bench.queue.setAside.map(\.path) {
            try FileManager.default.removeItem(atPath: path)
        }
        _ = try bench.sync()
        #expect(try bench.sync())
        let sent = try bench.server.requests.map { try SentBatch($0) }
        #expect(
            sent.filter { $0.stream == "places" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 5
        )
        #expect(
            sent.filter { $0.stream == "beacons" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 7
        )
        let lost = try bench.queue.losses().filter { $0.stream == .location && $0.kind == .corrupt }
        #expect(lost.map(\.records) == [20])
    }

    /// Its file exists but cannot be opened: its records wait, all others are sent, and the live
    /// database is not blamed.
    @Test(arguments: [false, true])
    func fileThatCannotBeOpened_holdsUpNothingElse(isFrozen: Bool) throws {
        let bench = try bench(isFrozen: isFrozen)
        defer { bench.finish() }
        let path = try #require(bench.queue.setAside.first?.path)
        let generation = bench.queue.generation
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away-wal")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(try bench.sync() == false)
        let sent = try bench.server.requests.map { try SentBatch($0) }
        #expect(
            sent.filter { $0.stream == "beacons" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 7
        )
        #expect(
            sent.filter { $0.stream == "places" }.reduce(0) { $0 + ($1.last - $1.first + 1) } == 5
        )
        #expect(bench.queue.generation == generation)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".away-wal", toPath: path)
        #expect(try bench.sync())
        #expect(try bench.queue.losses().isEmpty)
    }

    /// An older database was drained and the live one is quarantined too: it may get the number of
    /// the first.
    @Test func secondReplacement_sendsEachRecordOnce() throws {
        let bench = try UploadBench { _ in .ok }
        defer { bench.finish() }
        for count in [20, 5] {
            bench.add(count)
            try bench.queue.flushed()
            bench.queue.reportDamage("a test", generation: bench.queue.generation)
            try waitUntil("the salvage") {
                try bench.queue.unsent(.location, through: 0) == count
                    && !bench.queue.setAside.map(\.waiting).contains(nil)
            }
            #expect(try bench.sync())
        }
        let sent = try bench.server.requests.flatMap { try ids($0, "places") }
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
