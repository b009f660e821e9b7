// Forwarding points to a misbehaving server, from growing files.
import Foundation
import Host
import Support
import Testing

@testable import ServerBase
@testable import ServerExports

@Suite struct InfluxForwarderTests {
    private static let path = "stream=weather/date=2026-11-21/device=d1/records.ndjson"
    private let folder = TemporaryFolder("stream=weather/date=2026-11-21/device=d1")

    /// Appends records, all of one millisecond, whose names begin with `prefix`.
    private func store(_ prefix: String, _ count: Int, for forwarder: InfluxForwarder? = nil) throws
    {
        let known = (try? folder.read(Self.path)) ?? ""
        let lines = (0..<count).map {
            #"{"id":"\#(prefix)\#($0)","timestamp":"2026-11-21T04:30:07.123Z","n":"\#(prefix)\#($0)"}\#n"#
        }
        let text = known + lines.joined()
        try folder.write(text, to: Self.path)
        forwarder?.record([Self.path: Int64(text.utf8.count)])
    }

    /// Returns a running forwarder; there is no archive that would list files.
    private func start(_ url: String, limit: Duration = .seconds(60)) throws -> InfluxForwarder {
        let target = try InfluxTarget(url: url)
        let forwarder = try InfluxForwarder(
            directory: folder.path,
            sender: InfluxSender(target: target, userAgent: "test", limit: limit),
            waits: [.milliseconds(10)],
            log: ServerLog(isQuiet: true)
        )
        try forwarder.start()
        try waitUntilDone(forwarder)
        return forwarder
    }

    private func waitUntilDone(_ forwarder: InfluxForwarder) throws {
        try waitUntil("all forwarded") { forwarder.health["state"] as? String == "up_to_date" }
    }

    private func counts(_ forwarder: InfluxForwarder) -> [Int64?] {
        ["points", "refused", "left_out"].map { forwarder.health[$0] as? Int64 }
    }

    @Test func serverThatMisbehaves_getsEachPointOnce() throws {
        let words = "refuse 500 garbage moved page 503 401 404 hang cut 429 half ok"
        let influx = try InfluxStub(words)
        defer { influx.stop() }
        let forwarder = try start(influx.url, limit: .seconds(5))
        defer { forwarder.finish() }
        try store("a", 2500, for: forwarder)
        try waitUntilDone(forwarder)
        try store("b", 10, for: forwarder)
        try waitUntilDone(forwarder)
        let stored = try influx.stored()
        #expect(stored.count == 2510)
        #expect(Set(stored.values).count == 2510)
        #expect(counts(forwarder) == [2510, 0, 0])
        // Points stored without an answer are sent again, and nothing else is.
        #expect(influx.points.count > 2510)
        #expect(Set(influx.points).count == 2510)
        let said = influx.requests.map { String($0.prefix { $0 != " " }) }
        #expect(Set(said) == Set(words.split(separator: " ").map(String.init)))
    }

    /// InfluxDB 1 stores the other points of a request, InfluxDB 2 none of them.
    ///
    /// "odd": the message does not show that a point is at fault.
    @Test(arguments: ["partial", "whole", "odd"])
    func pointThatIsRefused_isCounted_andStopsNoOther(word: String) throws {
        let influx = try InfluxStub(word)
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        for (prefix, count) in [("a", 300), ("bad", 2), ("b", 300), ("bad", 1), ("c", 1)] {
            try store(prefix, count, for: forwarder)
        }
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [601, 3, 0])
        #expect(try influx.stored().count == 601)
        #expect(influx.requests.count < 100)
        // Alone, when nothing shows that the server accepts anything.
        try store("bad", 1, for: forwarder)
        try store("d", 1, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [602, 4, 0])
    }

    @Test func pointsThatAreAllTooOld_costOneRequest() throws {
        let influx = try InfluxStub("expired")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        try store("a", 200)
        defer { forwarder.finish() }
        try store("b", 1, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [0, 201, 0])
        #expect(influx.requests.count == 1)
    }

    @Test func requestThatIsTooLarge_isHalved() throws {
        let influx = try InfluxStub("small")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        try store("a", 50, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(try influx.stored().count == 50)
        #expect(counts(forwarder) == [50, 0, 0])
    }

    /// It refuses the first point alone and then accepts the others, which says nothing about the
    /// first.
    @Test func serverThatRecoversMeanwhile_costsNoPoint() throws {
        let influx = try InfluxStub("400 400 ok")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        try store("a", 3, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [3, 0, 0])
        #expect(try influx.stored().count == 3)
    }

    @Test func replacedFile_isReadFromStart_andDeletedOneIgnored() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        try store("a", 2, for: forwarder)
        try waitUntilDone(forwarder)
        try folder.write("", to: Self.path)
        try store("c", 9, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(influx.points.filter { $0.contains("\"c") }.count == 9)
        try FileManager.default.removeItem(atPath: folder.path + "/" + Self.path)
        forwarder.record([Self.path: 10_000])
        try waitUntilDone(forwarder)
        #expect(influx.points.count == 11)
    }

    /// Cut after a line, it grows past the checkpoint with lines of equal length: the offset alone
    /// would match.
    @Test func fileThatWasCutOff_isReadFromItsBeginning() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        try store("a", 10, for: forwarder)
        try waitUntilDone(forwarder)
        let lines = try folder.read(Self.path).split(separator: "\n")
        try folder.write(lines.prefix(8).joined(separator: "\n") + "\n", to: Self.path)
        try store("c", 9, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(Set(influx.points.filter { $0.contains("\"c") }).count == 9)
    }

    @Test func unreadableFile_isForwardedLater_andBlocksNoOther() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        let other = Self.path.replacingOccurrences(of: "d1", with: "d2")
        try store("a", 2)
        let file = folder.path + "/" + Self.path
        let length = try #require(fileSize(file))
        try FileManager.default.createDirectory(
            atPath: folder.path + "/" + other.dropLast("/records.ndjson".count),
            withIntermediateDirectories: true
        )
        try FileManager.default.moveItem(atPath: file, toPath: folder.path + "/" + other)
        // A link to itself cannot be opened.
        try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: file)
        forwarder.record([Self.path: length, other: length])
        try waitUntil("the other") { counts(forwarder) == [2, 0, 0] }
        try waitUntil("a failure") { forwarder.health["state"] as? String == "waiting" }
        try FileManager.default.removeItem(atPath: file)
        try store("a", 2)
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [4, 0, 0])
    }

    /// An overlong last line, and a line that is not a record.
    @Test func linesThatAreNoRecords_areCounted() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let forwarder = try start(influx.url)
        defer { forwarder.finish() }
        let long = String(repeating: "x", count: LineFile.longest + 10)
        let known = "no record\n{\"id\":\"\(long)\"}\n"
        try folder.write(known, to: Self.path)
        try store("a", 3, for: forwarder)
        try waitUntilDone(forwarder)
        #expect(counts(forwarder) == [3, 0, 2])
    }

    @Test func stop_endsARequest() throws {
        let influx = try InfluxStub("hang")
        defer { influx.stop() }
        let forwarder = try start(influx.url, limit: .seconds(600))
        try store("a", 1, for: forwarder)
        try waitUntil("a request") { influx.requests.count == 1 }
        forwarder.finish()
        try influx.does("ok")
        let next = try start(influx.url)
        defer { next.finish() }
        next.record([Self.path: try #require(fileSize(folder.path + "/" + Self.path))])
        try waitUntilDone(next)
        #expect(try influx.stored().count == 1)
    }

    // MARK: Address and token

    @Test func token_opensIt_asEachVersionWantsIt() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let file = try folder.write(" anna:s3cret\n", to: "token")
        for (url, header) in [
            (influx.url, "Authorization: Basic YW5uYTpzM2NyZXQ="),
            (influx.url2, "Authorization: Token anna:s3cret"),
        ] {
            let target = try InfluxTarget(url: url, tokenFile: file)
            #expect(try target.authorization() == header)
            let sender = InfluxSender(target: target, userAgent: "test")
            let verdict = try sender.send(["m v=1 1"], witness: nil, until: try StopSignal())
            #expect(verdict.taken == 1)
        }
        #expect(
            influx.requests == [
                "ok /write?db=w 1 Basic YW5uYTpzM2NyZXQ=",
                "ok /api/v2/write?org=o&bucket=b 1 Token anna:s3cret",
            ]
        )
        // A changed token is used from the next request on, and cannot add a header.
        let target = try InfluxTarget(url: influx.url2, tokenFile: file)
        try folder.write("new", to: "token")
        #expect(try target.authorization() == "Authorization: Token new")
        try folder.write("a\r\nX: b", to: "token")
        #expect(throws: Failure.self) { try target.authorization() }
    }

    @Test func wrongAddresses_areNamed() throws {
        for url in [
            "ftp://h/write?db=w", "h:8086", "http://h/", "http://h/write",
            "http://h/api/v2/write?db=w",
            "http://u:p@h/write?db=w", "http://h/write?db=w&p=secret",
            "http://h/write?db=w&precision=s",
        ] {
            #expect(throws: Failure.self, "\(url)") { try InfluxTarget(url: url) }
        }
        #expect(throws: Failure.self) {
            try InfluxTarget(url: "http://h/write?db=w", tokenFile: "/none")
        }
    }
}
