// Hostile and broken clients, with the real program: their cost, and service for others.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct HostileTests {
    private let receiver: ReceiverProcess

    init() throws { receiver = try ReceiverProcess() }

    /// Checks that others are served, and that memory is within its limit.
    private func expectService(_ place: SourceLocation = #_sourceLocation) throws {
        try receiver.expectService(place)
    }

    // MARK: Headers

    @Test(arguments: [400_000, 3_000_000])
    func unfinishedHeaderLine_isCutOff(bytes: Int) throws {
        let client = try RawClient(receiver)
        client.send("POST /api/ingest HTTP/1.1\r\nHost: receiver\r\nX-Long: ")
        client.send([UInt8](repeating: 97, count: bytes))
        try expectService()
        #expect([431, nil].contains(client.answer()?.status))
        // Searching the end again with each piece would take a minute.
        #expect(try receiver.processorSeconds() < 10)
    }

    @Test func headerOf32kB_isTaken_andALongerOneRefused() throws {
        for (size, status) in [(31 << 10, 200), (33 << 10, 431)] {
            let client = try RawClient(receiver)
            let body = RawRequest.batch([UUID().uuidString])
            let filler = (0..<size / 1024).map {
                "X-\($0): " + String(repeating: "a", count: 1010) + "\r\n"
            }
            client.send(RawRequest.head(length: body.count, extra: filler.joined()))
            client.send(body)
            #expect(client.answer()?.status == status)
        }
    }

    /// A timeout that restarts with each byte would never end this header.
    @Test func headerThatTrickles_hasAnEnd() throws {
        let clients = try (0..<16).map { _ in try RawClient(receiver) }
        for client in clients { client.send("GET /healthz HTTP/1.1\r\nX-Slow: ") }
        try expectService()
        try waitUntil("the end of all of them", limit: .seconds(120)) {
            for client in clients { client.send("a") }
            usleep(100_000)
            return clients.allSatisfy { $0.hasNews() }
        }
        #expect(clients.allSatisfy { $0.answer() == nil })
        try expectService()
    }

    @Test func connectionsOfAnAddress_areLimited_andOthersGoOn() throws {
        let clients = try (0..<16).map { _ in try RawClient(receiver, from: "127.0.0.7") }
        for client in clients {
            client.send(RawRequest.health)
            #expect(client.answer()?.status == 200)
        }
        let further = try RawClient(receiver, from: "127.0.0.7")
        further.send(RawRequest.health)
        #expect(further.answer() == nil)
        try expectService()
        clients[3].send(RawRequest.health)
        #expect(clients[3].answer()?.status == 200)
    }

    // MARK: Bodies

    @Test func bodyThatStops_holdsNobodyUp_andIsNoBatch() throws {
        let clients = try (1...3).flatMap { number in
            try (0..<16).map { _ in try RawClient(receiver, from: "127.0.0.\(number)") }
        }
        for client in clients {
            client.send(RawRequest.head(length: 1 << 20))
            client.send([UInt8](repeating: 32, count: 200_000))
        }
        try expectService()
        // Half-open: the peer has vanished, or has only stopped sending.
        for client in clients.prefix(8) { client.finishSending() }
        try expectService()
        #expect(try receiver.records("places").count == 2)
    }

    @Test func chunkedBodies_areTakenUpToTheLimit() throws {
        let body = RawRequest.batch(["a", "b"])
        let client = try RawClient(receiver)
        client.send(RawRequest.head(extra: "Transfer-Encoding: chunked\r\n"))
        // Without extensions, which libmicrohttpd 1.0.1 treats as a broken chunk.
        for byte in body { client.send("1\r\n" + String(UnicodeScalar(byte)) + "\r\n") }
        client.send("0\r\n\r\n")
        #expect(client.answer()?.status == 200)
        client.send(RawRequest.head(extra: "Transfer-Encoding: chunked\r\n") + "1000000\r\n")
        client.send([UInt8](repeating: 32, count: 1 << 24))
        client.send("\r\n1\r\n \r\n0\r\n\r\n")
        #expect(client.answer()?.status == 413)
        let broken = try RawClient(receiver)
        broken.send(RawRequest.head(extra: "Transfer-Encoding: chunked\r\n") + "zz\r\n")
        #expect(broken.answer()?.status == 400)
        let endless = try RawClient(receiver)
        endless.send(RawRequest.head(extra: "Transfer-Encoding: chunked\r\n") + "1000\r\nab")
        endless.finishSending()
        #expect(endless.answer() == nil)
        try expectService()
    }

    @Test func twoLengths_areRefused() throws {
        let client = try RawClient(receiver)
        let extra = "Transfer-Encoding: chunked\r\n"
        client.send(RawRequest.head(length: 5, extra: extra) + "0\r\n\r\n")
        #expect(client.answer()?.status == 400)
        try expectService()
    }

    /// RFC 9112, 5.1 and 6.3: another reader may end the body elsewhere.
    @Test(arguments: [
        "Content-Length: 5\r\nContent-Length: 6\r\n", "content-length: 5\r\nContent-Length: 5\r\n",
        "Content-Length : 5\r\n", "Content-Length\t: 5\r\n", "Transfer-Encoding : chunked\r\n",
        "Content-Length: 5\r\nX Y: 1\r\n",
    ])
    func lengthThatReadersTakeDifferently_isRefused(fields: String) throws {
        let client = try RawClient(receiver)
        client.send(RawRequest.head(extra: fields) + "hello")
        #expect(client.answer()?.status == 400)
        try expectService()
    }

    @Test func bodyWithoutALength_isAskedForOne() throws {
        let client = try RawClient(receiver)
        client.send(RawRequest.head())
        #expect(client.answer()?.status == 411)
        try expectService()
    }

    private static func bomb(_ inner: String, _ count: Int) -> Data {
        let head = #"{"stream_name":"s","device_id":"d","data":["#
        let tail = #"{}],"batch_metadata":{"total_records":1}}"#
        return Data((head + String(repeating: inner, count: count) + tail).utf8)
    }

    /// Bodies of some kilobytes on the wire: their content, and a part of the answer.
    private static let bombs = [
        ("{},", (16 << 20) / 3, "total_records"), ("[", 32 << 20, "JSON"),
        (#"{"a":"#, 4 << 20, "JSON"), ("1,", 1 << 20, "total_records"), ("\\", 8 << 20, "JSON"),
        (#""\ud800","#, 2 << 20, "JSON"), ("        ", 1 << 18, "record 0"),
    ]

    @Test(arguments: bombs, ["gzip", "zstd"])
    func bomb_isRefused_inLittleMemory(_ bomb: (String, Int, String), _ encoding: String) throws {
        let plain = Self.bomb(bomb.0, bomb.1)
        let body = Array(encoding == "gzip" ? gzip(plain) : zstandard(plain))
        #expect(body.count < 1 << 20)
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, encoding: encoding))
        client.send(body)
        try expectService()
        let answer = client.answer(within: 5)
        #expect(answer?.status == 422)
        #expect(answer?.body.contains(bomb.2) == true, "\(answer?.body ?? "none")")
        try expectService()
    }

    /// Ten bytes request a window of 64 MiB (RFC 8878, section 3.1.1.1.2).
    @Test func zstdWindowOf64MiB_isRefused() throws {
        let client = try RawClient(receiver)
        let body: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 16 << 3, 0x09, 0x00, 0x00, 0x20]
        client.send(RawRequest.head(length: body.count, encoding: "zstd"))
        client.send(body)
        #expect(client.answer()?.status == 400)
        try expectService()
    }

    @Test func manyTinyRecords_areStored_inLittleMemory() throws {
        let ids = (0..<100_000).map { "r\($0)" }
        let body = Array(gzip(Data(RawRequest.batch(ids))))
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, encoding: "gzip"))
        client.send(body)
        #expect(client.answer()?.body.contains(#""accepted":100000"#) == true)
        try expectService()
    }

    @Test func recordOf60MiB_isStored_inLittleMemory() throws {
        let text = String(repeating: "a", count: 60 << 20)
        let body = Array(gzip(Data(RawRequest.batch(["a"], padding: #","text":"\#(text)""#))))
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, encoding: "gzip"))
        client.send(body)
        #expect(client.answer()?.status == 200)
        try expectService()
        let path = receiver.folder + "/stream=places/date=2026-11-21/device=d1/records.ndjson"
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        #expect(size > 60 << 20)
    }

    @Test func recordsOfTooManyDays_areToBeSplit() throws {
        let records = (0..<101).map { day in
            #"{"id":"x\#(day)","timestamp":"\#(1000 + day)-01-01T00:00:00Z"}"#
        }
        let text = """
            {"stream_name":"s","device_id":"d","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":101}}
            """
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: text.utf8.count) + text)
        let answer = client.answer()
        #expect(answer?.status == 422)
        #expect(answer?.body.contains("more than 100 days in one batch of d") == true)
        try expectService()
    }

    @Test func concurrentUploads_areStored_inBoundedMemory() throws {
        #expect(try receiver.uploadsOf8MiB(64) == Array(repeating: 200, count: 64))
        try expectService()
        #expect(try receiver.records("places").count == 8 + 1)
    }

    // MARK: Requests in a row

    @Test func requestsInAPipeline_areAnsweredInTheirOrder() throws {
        let client = try RawClient(receiver)
        let (first, second) = (RawRequest.batch(["a"]), RawRequest.batch(["b", "a"]))
        let heads = [first, second].map { Array(RawRequest.head(length: $0.count).utf8) }
        client.send(heads[0] + first + heads[1] + second + Array(RawRequest.health.utf8))
        #expect(client.answer()?.body.contains(#""accepted":1"#) == true)
        #expect(client.answer()?.body.contains(#""duplicates":1"#) == true)
        #expect(client.answer()?.body.contains(#""records":2"#) == true)
    }

    @Test func connectionGoesOnAfterAnError() throws {
        let client = try RawClient(receiver)
        let wrong = Array("{}".utf8)
        client.send(Array(RawRequest.head(length: wrong.count).utf8) + wrong)
        #expect(client.answer()?.status == 422)
        client.send(RawRequest.head(length: 0))
        #expect(client.answer()?.status == 422)
        let body = RawRequest.batch(["a"])
        client.send(Array(RawRequest.head(length: body.count).utf8) + body)
        #expect(client.answer()?.status == 200)
    }

    /// The answer comes before the body and can be read, although the client sends everything.
    @Test func refusalOfALargeBody_isRead() throws {
        for (length, token, status) in [(20 << 20, "t", 413), (64 << 10, "", 401)] {
            let client = try RawClient(receiver)
            client.send(RawRequest.head(length: length, token: token))
            #expect(client.send([UInt8](repeating: 32, count: length)))
            #expect(client.answer()?.status == status)
            #expect(client.isAtEnd())
        }
        // An unknown client that keeps sending is not read to the end, but still gets the answer.
        let endless = try RawClient(receiver)
        endless.send(RawRequest.head(length: 100 << 20, token: ""))
        #expect(!endless.send([UInt8](repeating: 32, count: 100 << 20)))
        #expect([401, nil].contains(endless.answer()?.status))
        try expectService()
    }

    @Test func clientOfHTTP10_isAnswered_andLeft() throws {
        let client = try RawClient(receiver)
        let body = RawRequest.batch(["a"])
        client.send(Array(RawRequest.head(length: body.count, version: "HTTP/1.0").utf8) + body)
        #expect(client.answer()?.status == 200)
        #expect(client.isAtEnd())
    }

    @Test func expectation_isMetWhereTheBodyIsWanted() throws {
        let body = RawRequest.batch(["a"])
        let expecting = "Expect: 100-continue\r\n"
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, extra: expecting))
        #expect(client.answer()?.status == 100)
        client.send(body)
        #expect(client.answer()?.status == 200)
        let tooLarge = try RawClient(receiver)
        tooLarge.send(RawRequest.head(length: 1 << 30, extra: expecting))
        #expect(tooLarge.answer()?.status == 413)
    }

    @Test(arguments: [
        "\r\n\r\n", "GET\r\n\r\n", "\u{0}\u{1}\u{2}", "GET / HTTP/9.9\r\n\r\n",
        "POST /api/ingest HTTP/1.1\r\n: x\r\n\r\n",
        "POST /api/ingest HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /api/ingest HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{FC}\u{3}\u{3}",
    ])
    func whatIsNoRequest_isNoHarm(bytes: String) throws {
        let client = try RawClient(receiver)
        client.send(bytes)
        client.finishSending()
        #expect(client.answer()?.status ?? 400 >= 400)
        try expectService()
    }

    @Test func stop_waitsForNoClient() throws {
        let clients = try (0..<13).map { _ in try RawClient(receiver) }
        clients[12].send("POST /api/ingest HTTP/1.1\r\nX-Long: ")
        clients[12].send([UInt8](repeating: 97, count: 3_000_000))
        for client in clients.prefix(4) { client.send("POST /api/ingest HTTP/1.1\r\nX-Long: ") }
        for client in clients.dropFirst(4).prefix(4) {
            client.send(RawRequest.head(length: 1 << 20) + "{")
        }
        for client in clients[8..<12] {
            client.send(RawRequest.head(length: 1 << 20, token: ""))
        }
        try expectService()
        #expect(receiver.terminate() == 0)
    }
}
