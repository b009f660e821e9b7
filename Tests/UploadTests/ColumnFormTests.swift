// When batches go in columns, and what becomes of those that the server refuses.
import Foundation
import Host
import HTTP
import Queue
import QueueSupport
import Records
import Support
import Testing
import Upload

@Suite struct ColumnFormTests {
    private static let takes = Behaviour.answer(status: 200, body: #"{"columns":1}"#)

    private static func text(_ request: Request) -> String {
        String(decoding: (try? gunzip(request.body)) ?? Data(request.body), as: UTF8.self)
    }

    private static func isColumns(_ request: Request) -> Bool {
        text(request).contains(#""columns":{"count":"#)
    }

    /// The requests with fixes.
    private func sent(_ fixture: UploadFixture) -> [Request] {
        fixture.server.requests.filter { Self.text($0).contains(#""stream_name":"places""#) }
    }

    /// Adds three fixes and sends them, as often as asked.
    private func run(_ fixture: UploadFixture, syncs: Int) throws {
        for _ in 0..<syncs {
            fixture.add(3)
            _ = try fixture.sync()
        }
    }

    @Test func columns_areForServersThatSaySo() throws {
        let fixture = try UploadFixture { _ in Self.takes }
        defer { fixture.finish() }
        try run(fixture, syncs: 3)
        #expect(sent(fixture).map(Self.isColumns) == [false, true, true])
        #expect(fixture.figures?.uploaded == 9)
    }

    @Test(arguments: [#"{}"#, #"{"columns":2}"#, #"{"columns":[1]}"#, #"{"columns":true}"#, ""])
    func others_getRows(answer: String) throws {
        let fixture = try UploadFixture { _ in .answer(status: 200, body: answer) }
        defer { fixture.finish() }
        try run(fixture, syncs: 2)
        #expect(sent(fixture).map(Self.isColumns) == [false, false])
    }

    @Test func oneRecordAlone_isARow() throws {
        let fixture = try UploadFixture { _ in Self.takes }
        defer { fixture.finish() }
        try run(fixture, syncs: 1)
        fixture.add(1)
        _ = try fixture.sync()
        #expect(sent(fixture).map(Self.isColumns) == [false, false])
    }

    @Test func serverThatNoLongerSaysSo_getsRows() throws {
        let fixture = try UploadFixture { Self.isColumns($0) ? .ok : Self.takes }
        defer { fixture.finish() }
        try run(fixture, syncs: 4)
        #expect(sent(fixture).map(Self.isColumns) == [false, true, false, true])
    }

    @Test func rows_canBeAskedFor() throws {
        let fixture = try UploadFixture(change: { $0.allowsColumns = false }) { _ in Self.takes }
        defer { fixture.finish() }
        try run(fixture, syncs: 2)
        #expect(sent(fixture).map(Self.isColumns) == [false, false])
    }

    @Test(arguments: [400, 413, 415, 422])
    func refusedColumns_comeInRows_underANewKey(status: Int) throws {
        let fixture = try UploadFixture {
            Self.isColumns($0) ? .answer(status: status, body: "{}") : Self.takes
        }
        defer { fixture.finish() }
        try run(fixture, syncs: 3)
        let requests = sent(fixture)
        // The next batches are not tried in columns.
        let forms =
            status == 415 ? [false, true, true, false, false] : [false, true, false, false]
        #expect(requests.map(Self.isColumns) == forms)
        let keys = requests.map { $0.headers["idempotency-key"] }
        #expect(Set(keys).count == 4)
        #expect(fixture.figures?.uploaded == 9)
        #expect(fixture.figures?.quarantined == 0)
    }

    @Test func retry_hasTheSameBytes() throws {
        let isFirst = Locked(true)
        let fixture = try UploadFixture { request in
            guard Self.isColumns(request),
                isFirst.update({ was in
                    defer { was = false }; return was
                })
            else { return Self.takes }
            return .hangUp
        }
        defer { fixture.finish() }
        try run(fixture, syncs: 3)
        let columns = sent(fixture).filter(Self.isColumns)
        #expect(columns.count >= 3)
        #expect(columns[0].body == columns[1].body)
        #expect(columns[0].headers["idempotency-key"] == columns[1].headers["idempotency-key"])
    }

    /// The server may be an older one by then.
    @Test func resentColumns_comeInRows() throws {
        let fixture = try UploadFixture { _ in Self.takes }
        defer { fixture.finish() }
        try run(fixture, syncs: 2)
        let range = ResendRange(.location, since: WallTime(milliseconds: 0))
        #expect(try fixture.queue.perform { try $0.resend(range).records } == 6)
        _ = try fixture.sync()
        let requests = sent(fixture)
        #expect(requests.map(Self.isColumns) == [false, true, false, false])
        let keys = requests.map { $0.headers["idempotency-key"] }
        #expect(keys[2] == keys[0] && keys[3] != keys[1])
    }

    /// One that takes any JSON, and finds no records in it, would lose them.
    @Test func anotherServer_getsRows() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        func frozen(for endpoint: String, columns: Bool = true) throws -> Batch? {
            var settings = DestinationSettings(
                transport: TransportSettings(endpoint: endpoint, userAgent: "waypost/test"),
                deviceID: "device-1",
                streamNames: [:],
                token: { "secret" }
            )
            settings.allowsColumns = columns
            _ = try settings.open(queue)
            return try queue.nextReady(.location)
        }
        _ = try frozen(for: "https://a.example/api/ingest")
        addFixes(3, to: queue)
        var range = try #require(try queue.flushed().pending(.location))
        range.form = .columns
        let pending = range
        let batch = try #require(try queue.perform { try $0.freeze(pending, through: 3) })
        let same = try #require(try frozen(for: "https://a.example/api/ingest"))
        #expect(same.form == .columns && same.key == batch.key)
        let other = try #require(try frozen(for: "https://b.example/api/ingest"))
        #expect(other.form == .rows && other.key != batch.key && other.records == 3)
        queue.close()
    }
}
