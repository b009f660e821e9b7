// Each answer of waypost-protocol(7), ANSWERS, at each position of a backlog.
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing
import Upload

/// One row of the table.
struct TableRow: Sendable, CustomTestStringConvertible {
    enum Outcome: Sendable, Equatable {
        case accepted
        /// The same batch is retried later; `status` shows `code` until then.
        case kept(code: String, phase: UploadReport.Phase)
        /// Two halves, each under a new key.
        case halved
    }

    var testDescription: String
    var answer: Behaviour
    var outcome: Outcome

    init(_ name: String, _ answer: Behaviour, _ outcome: Outcome) {
        (testDescription, self.answer, self.outcome) = (name, answer, outcome)
    }

    static let later = Outcome.kept(code: "E003", phase: .waiting)

    static let all: [TableRow] = [
        .init("200 empty", .answer(status: 200, body: ""), .accepted),
        .init("204 blank", .answer(status: 204, body: ""), .accepted),
        .init("201 JSON", .answer(status: 201, body: #"{"accepted":400,"rejected":0}"#), .accepted),
        .init("200 null", .answer(status: 200, body: "null"), later),
        .init("200 false", .answer(status: 200, body: "false"), later),
        .init("200 error", .answer(status: 200, body: #"{"error":"disk full"}"#), later),
        .init("200 too few", .answer(status: 200, body: #"{"accepted":1,"rejected":0}"#), later),
        .init("200 text in JSON", .answer(status: 200, body: #""ok""#), .accepted),
        .init("200 HTML", .answer(status: 200, body: "<!DOCTYPE html><p>Log in</p>"), later),
        .init("200 text", .answer(status: 200, body: "OK"), later),
        .init("200 half of JSON", .answer(status: 200, body: #"{"accepted":"#), later),
        .init("408", .answer(status: 408, body: ""), later),
        .init("409", .answer(status: 409, body: ""), later),
        .init("418", .answer(status: 418, body: ""), later),
        .init("425", .answer(status: 425, body: ""), later),
        .init("429", .answer(status: 429, body: "", headers: ["Retry-After: 7"]), later),
        .init("429 of a stream", .answer(status: 429, body: #"{"stream":"a"}"#), later),
        .init("500", .answer(status: 500, body: "<html>no</html>"), later),
        .init("502", .answer(status: 502, body: ""), later),
        .init("503", .answer(status: 503, body: "", headers: ["Retry-After: 99999"]), later),
        .init("401", .answer(status: 401, body: ""), .kept(code: "E002", phase: .tokenRefused)),
        .init("403", .answer(status: 403, body: ""), .kept(code: "E002", phase: .tokenRefused)),
        .init("404", .answer(status: 404, body: ""), .kept(code: "E003", phase: .endpointWrong)),
        .init("405", .answer(status: 405, body: ""), .kept(code: "E003", phase: .endpointWrong)),
        .init(
            "302",
            .answer(status: 302, body: "", headers: ["Location: http://127.0.0.1:1/"]),
            .kept(code: "E003", phase: .endpointWrong)
        ),
        .init("413", .answer(status: 413, body: "too big"), .halved),
        .init("400", .answer(status: 400, body: "bad"), .halved),
        .init("422", .answer(status: 422, body: "bad"), .halved),
        .init("200 rejected", .answer(status: 200, body: #"{"rejected":1}"#), .halved),
        .init(
            "200 rejected list",
            .answer(status: 200, body: #"{"rejected":["a"]}"#),
            .halved
        ),
    ]
}

/// The request of a backlog that gets the answer.
enum Place: String, CaseIterable, Sendable {
    case first, middle, last

    /// Returns whether a batch of a backlog of `count` records is at this position.
    func holds(_ batch: SentBatch, of count: Int) -> Bool {
        switch self {
        case .first: batch.first == 1
        case .middle: batch.first > 1 && batch.last < count
        case .last: batch.last == count
        }
    }
}

/// The parts of a request that matter to the queue.
struct SentBatch {
    var stream: String
    var first: Int
    var last: Int
    var key: String
    var body: [UInt8]

    init(_ request: Request) throws {
        let object = try JSONSerialization.jsonObject(with: gunzip(request.body))
        let content = try #require(object as? [String: Any])
        let metadata = try #require(content["batch_metadata"] as? [String: Any])
        stream = try #require(content["stream_name"] as? String)
        first = try #require(metadata["first_sequence"] as? Int)
        last = try #require(metadata["last_sequence"] as? Int)
        key = try #require(request.headers["idempotency-key"])
        body = request.body
    }
}

@Suite struct VerdictTableTests {
    private static let count = 400

    /// Answers the first batch at a position with `fault` while `isFaulty`, and the rest with 200.
    private func fixture(
        _ fault: Behaviour,
        _ place: Place,
        _ isFaulty: Locked<Bool>,
        _ faulted: Locked<String?>
    ) throws -> UploadFixture {
        let fixture = try UploadFixture(maxBatchBytes: 16 << 10) { request in
            guard isFaulty.value, let batch = try? SentBatch(request),
                place.holds(batch, of: Self.count)
            else { return .ok }
            let key = faulted.update { key in
                key = key ?? batch.key
                return key
            }
            return key == batch.key ? fault : .ok
        }
        fixture.add(Self.count)
        return fixture
    }

    @Test(arguments: TableRow.all, Place.allCases)
    func answer_doesWhatTheTableSays(row: TableRow, place: Place) throws {
        let (isFaulty, faulted) = (Locked(true), Locked<String?>(nil))
        let fixture = try fixture(row.answer, place, isFaulty, faulted)
        defer { fixture.finish() }
        let isDone = try fixture.sync()
        let batches = try fixture.server.requests.map(SentBatch.init)
        let key = try #require(faulted.value)
        let batch = try #require(batches.first { $0.key == key })
        try expectSum(fixture)
        switch row.outcome {
        case .accepted:
            #expect(isDone)
            #expect(fixture.figures?.uploaded == Self.count)
            #expect(batches.filter { $0.key == key }.count == 1)
        case .kept(let code, let phase):
            #expect(!isDone)
            try expectKept(fixture, batch, code: code, phase: phase)
            isFaulty.update { $0 = false }
            #expect(try fixture.sync())
            let tries = try fixture.server.requests.map(SentBatch.init).filter { $0.key == key }
            #expect(tries.count >= 2)
            #expect(tries.allSatisfy { $0.body == batch.body })
            #expect(fixture.figures?.uploaded == Self.count)
            #expect(fixture.board.state.value?.phase == .idle)
            #expect(fixture.board.state.value?.streams[.location]?.lastError == nil)
        case .halved:
            #expect(isDone)
            #expect(fixture.figures?.uploaded == Self.count)
            let halves = batches.filter {
                $0.key != key && $0.first >= batch.first && $0.last <= batch.last
            }
            #expect(halves.map(\.first) == [batch.first, halves[0].last + 1])
            #expect(halves.last?.last == batch.last)
            #expect(Set(halves.map(\.key) + [key]).count == 3)
        }
        try expectSum(fixture)
        #expect(fixture.figures?.quarantined == 0)
    }

    private func expectSum(_ fixture: UploadFixture) throws {
        let figures = try #require(fixture.figures)
        let sum = figures.uploaded + figures.pending + figures.quarantined + figures.evicted
        #expect(figures.accepted == sum)
        #expect(figures.accepted == Self.count)
    }

    private func expectKept(
        _ fixture: UploadFixture,
        _ batch: SentBatch,
        code: String,
        phase: UploadReport.Phase
    ) throws {
        let kept = try #require(try fixture.queue.flushed().nextReady(.location))
        #expect("\"\(kept.key)\"" == batch.key)
        #expect(kept.attempts == 0)
        // The server has everything before it, and nothing after it was tried.
        #expect(fixture.figures?.uploaded == batch.first - 1)
        // On a busy machine the retry may have begun: it ends the same way.
        try waitUntil("the end of a sync") {
            let report = fixture.board.state.value
            return report?.phase == phase && report?.streams[.location]?.inFlight == 0
        }
        let error = fixture.board.state.value?.streams[.location]?.lastError
        #expect(error?.failure.code?.rawValue == code)
    }

    @Test func halves_haveNoAttempts_beforeARecordStandsAlone() throws {
        // Refused as long as it has more than 100 records, and then the server is down.
        let fixture = try UploadFixture { request in
            guard let batch = try? SentBatch(request) else { return .ok }
            return batch.last - batch.first >= 100
                ? .answer(status: 400, body: "no") : .answer(status: 503, body: "")
        }
        defer { fixture.finish() }
        fixture.add(Self.count)
        #expect(try !fixture.sync())
        let ready = try #require(try fixture.queue.flushed().nextReady(.location))
        #expect(ready.attempts == 0)
        #expect(ready.error == "HTTP 400: no")
        #expect(ready.records == 100)
        #expect(fixture.figures?.pending == Self.count)
        try expectSum(fixture)
    }
}
