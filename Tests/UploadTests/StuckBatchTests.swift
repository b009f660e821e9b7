// A batch that fails repeatedly must not block its stream, and no record may arrive in two forms.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing

import Upload

/// A request's records, by their ids.
private struct Parts {
    var first: Int
    var last: Int
    /// Each record's JSON, by its id.
    var records: [String: String] = [:]

    init(_ request: Request) throws {
        let object = try JSONSerialization.jsonObject(with: Data(request.body))
        let content = try #require(object as? [String: Any])
        let metadata = try #require(content["batch_metadata"] as? [String: Any])
        first = try #require(metadata["first_sequence"] as? Int)
        last = try #require(metadata["last_sequence"] as? Int)
        for record in try #require(content["data"] as? [[String: Any]]) {
            let id = try #require(record["id"] as? String)
            let bytes = try JSONSerialization.data(
                withJSONObject: record,
                options: [.sortedKeys]
            )
            records[id] = String(decoding: bytes, as: UTF8.self)
        }
    }
}

@Suite struct StuckBatchTests {
    private static let poison = 250

    private static func settings(_ change: (inout UploadSettings) -> Void = { _ in })
        -> UploadSettings
    {
        UploadSettings {
            $0.clockPatience = .zero
            change(&$0)
        }
    }

    /// A bench whose server fails on one record while `isFaulty`.
    private func fixture(
        _ isFaulty: Locked<Bool>,
        _ settings: UploadSettings = settings()
    ) throws -> BudgetFixture {
        try BudgetFixture(settings) { request in
            guard isFaulty.value, let parts = try? Parts(request), parts.first <= Self.poison,
                parts.last >= Self.poison
            else { return .ok }
            return .answer(status: 500, body: "oops")
        }
    }

    private func sync(_ fixture: BudgetFixture, _ times: Int) {
        for _ in 0..<times {
            _ = fixture.sync.perform(.tick)
            fixture.clock.advance(by: .seconds(300))
        }
    }

    /// Returns the records that a server kept: those of requests that it accepted.
    private func kept(_ fixture: BudgetFixture, _ took: (Parts) -> Bool) throws -> Set<String> {
        try fixture.server.requests.map(Parts.init).filter(took).reduce(into: []) {
            $0.formUnion($1.records.keys)
        }
    }

    private func expectOneFormEach(_ fixture: BudgetFixture) throws {
        var seen: [String: String] = [:]
        for parts in try fixture.server.requests.map(Parts.init) {
            for (id, json) in parts.records {
                #expect(seen[id] == nil || seen[id] == json, "\(id)")
                seen[id] = json
            }
        }
    }

    private func message(_ fixture: BudgetFixture) -> String {
        fixture.board.state.value?.streams[.location]?.lastError?.failure.message ?? ""
    }

    /// 0 of 500 arrived in 40 syncs; only this stream could show that the server accepts others.
    @Test func recordOnWhichTheServerFails_holdsUpNothingElse() throws {
        let isFaulty = Locked(true)
        let fixture = try fixture(isFaulty)
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        for _ in 0..<40 {
            addFixes(1, to: fixture.queue)
            sync(fixture, 1)
        }
        #expect(try fixture.pending(.location) == 1)
        #expect(message(fixture).contains("oops"))
        #expect(message(fixture).contains("sent after the rest of its stream"))
        let figures = try fixture.queue.flushed().statistics().first { $0.stream == .location }
        #expect(figures?.quarantined == 0)
        isFaulty.update { $0 = false }
        sync(fixture, 1)
        #expect(try fixture.pending(.location) == 0)
        #expect(try kept(fixture) { _ in true }.count == 540)
        try expectOneFormEach(fixture)
    }

    @Test func stuckRecord_waitsAfterARestart_andDelaysNoOther() throws {
        let fixture = try fixture(Locked(true))
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        for _ in 0..<40 {
            addFixes(1, to: fixture.queue)
            sync(fixture, 1)
        }
        try fixture.restart()
        addFixes(10, to: fixture.queue)
        addBeacons(10, to: fixture.queue)
        let requests = fixture.server.requests.count
        sync(fixture, 1)
        #expect(try fixture.pending(.location) == 1)
        #expect(try fixture.pending(.beacons) == 0)
        // The ten, the sightings, and the one.
        #expect(fixture.server.requests.count - requests == 3)
    }

    @Test func outage_splitsNothing() throws {
        let isOut = Locked(true)
        let fixture = try BudgetFixture(Self.settings()) { _ in
            isOut.value ? .answer(status: 503, body: "busy") : .ok
        }
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        addBeacons(500, to: fixture.queue)
        for _ in 0..<40 {
            addFixes(1, to: fixture.queue)
            addBeacons(1, to: fixture.queue)
            sync(fixture, 1)
        }
        // The first batches, and sometimes a few newer records, to test whether the server accepts
        // those.
        let keys = Set(fixture.server.requests.map { $0.headers["idempotency-key"] ?? "" })
        #expect(keys.count <= 8, "\(keys.count)")
        isOut.update { $0 = false }
        let before = fixture.server.requests.count
        for _ in 0..<4 { sync(fixture, 1) }
        #expect(try fixture.pending(.location) == 0)
        #expect(try fixture.pending(.beacons) == 0)
        #expect(fixture.server.requests.count - before <= 20)
        try expectOneFormEach(fixture)
    }

    /// A network that drops long requests: they end without an answer.
    @Test func longRequestsThatGetNoAnswer_arriveInParts() throws {
        let fixture = try BudgetFixture(Self.settings()) { request in
            request.body.count > 20_000 ? .hangUp : .ok
        }
        defer { fixture.finish() }
        addFixes(2000, to: fixture.queue)
        for _ in 0..<60 {
            addBeacons(1, to: fixture.queue)
            sync(fixture, 1)
        }
        #expect(try fixture.pending(.location) == 0)
        #expect(try kept(fixture) { _ in true }.count == 2060)
        try expectOneFormEach(fixture)
    }

    /// The server keeps what it answers with 500: only its deduplication by id prevents duplicates.
    @Test func partsOfABatchWhoseFateIsUnknown_keepTheirIDs() throws {
        let fixture = try BudgetFixture(Self.settings()) { request in
            request.body.count > 20_000 ? .answer(status: 500, body: "late") : .ok
        }
        defer { fixture.finish() }
        addFixes(1000, to: fixture.queue)
        for _ in 0..<40 {
            addBeacons(1, to: fixture.queue)
            sync(fixture, 1)
        }
        #expect(try fixture.pending(.location) == 0)
        let fixes = try fixture.server.requests.filter {
            String(decoding: $0.body.prefix(60), as: UTF8.self).contains("places")
        }.map(Parts.init)
        let whole = try #require(fixes.first)
        #expect(whole.records.count == 1000)
        let parts = fixes.filter { $0.records.count < 500 }
        #expect(Set(parts.flatMap { $0.records.keys }) == Set(whole.records.keys))
        try expectOneFormEach(fixture)
    }

    @Test func loweredLimit_splitsWhatIsFrozen() throws {
        let isOut = Locked(true)
        let fixture = try BudgetFixture(Self.settings()) { _ in
            isOut.value ? .answer(status: 503, body: "busy") : .ok
        }
        defer { fixture.finish() }
        addFixes(1000, to: fixture.queue)
        sync(fixture, 1)
        isOut.update { $0 = false }
        let limit = 16 << 10
        try fixture.reload(Self.settings { $0.maxBatchBytes = limit })
        sync(fixture, 1)
        #expect(try fixture.pending(.location) == 0)
        #expect(fixture.server.requests[0].body.count > limit)
        #expect(fixture.server.requests.dropFirst().allSatisfy { $0.body.count <= limit })
        try expectOneFormEach(fixture)
        // A batch that fits the limit under which it was frozen keeps its key.
        isOut.update { $0 = true }
        addFixes(40, to: fixture.queue)
        sync(fixture, 2)
        isOut.update { $0 = false }
        sync(fixture, 2)
        let keys = fixture.server.requests.suffix(3).map { $0.headers["idempotency-key"] }
        #expect(Set(keys).count == 1)
    }

    /// The server has evaluated nothing and may be storing the whole: no part may be sent under
    /// another key.
    @Test(arguments: [
        Behaviour.answer(status: 409, body: ""),
        .answer(status: 409, body: "", headers: ["Retry-After: 5"]),
        .answer(status: 429, body: "", headers: ["Retry-After: 5"]),
        .answer(status: 503, body: "", headers: ["Retry-After: 5"]),
    ])
    func batchThatTheServerWantsLater_keepsItsKey(answer: Behaviour) throws {
        let isFaulty = Locked(true)
        let fixture = try BudgetFixture(Self.settings()) { request in
            guard isFaulty.value, let parts = try? Parts(request), parts.first <= Self.poison,
                parts.last >= Self.poison
            else { return .ok }
            return answer
        }
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        for _ in 0..<20 {
            addBeacons(1, to: fixture.queue)
            sync(fixture, 1)
        }
        isFaulty.update { $0 = false }
        sync(fixture, 2)
        #expect(try fixture.pending(.location) == 0)
        #expect(try fixture.pending(.beacons) == 0)
        let tries = fixture.server.requests.filter {
            String(decoding: $0.body.prefix(60), as: UTF8.self).contains("places")
        }
        #expect(tries.count > 10)
        #expect(Set(tries.map { $0.headers["idempotency-key"] }).count == 1)
    }

    /// A store may have the object, and would not recognise its records in another one.
    @Test func batchToABucket_staysWhole_andWaitsBehindItsStream() throws {
        let isFaulty = Locked(true)
        let fixture = try BudgetFixture(
            Self.settings { $0.destination = .s3 },
            region: "us-east-1"
        ) { request in
            guard isFaulty.value, request.body.count > 20_000 else { return .stored }
            return .answer(status: 500, body: "oops")
        }
        defer { fixture.finish() }
        addFixes(500, to: fixture.queue)
        for _ in 0..<40 {
            addFixes(1, to: fixture.queue)
            sync(fixture, 1)
        }
        #expect(try fixture.pending(.location) == 501)
        isFaulty.update { $0 = false }
        sync(fixture, 1)
        #expect(try fixture.pending(.location) == 0)
        let large = fixture.server.requests.filter { $0.body.count > 20_000 }
        #expect(Set(large.map(\.path)).count == 1)
    }
}
