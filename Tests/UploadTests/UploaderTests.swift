import CZlib
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct UploaderTests {
    @Test func batch_isWhatTheProtocolSays() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        let request = try #require(fixture.server.requests.first)
        #expect(fixture.server.requests.count == 1)
        #expect(request.path == "/api/ingest")
        #expect(request.headers["x-device-token"] == "secret")
        #expect(request.headers["content-encoding"] == "gzip")
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["expect"] == nil)
        let body = try #require(
            JSONSerialization.jsonObject(with: gunzip(request.body)) as? [String: Any]
        )
        let metadata = try #require(body["batch_metadata"] as? [String: Any])
        #expect(body["stream_name"] as? String == "places")
        #expect(body["device_id"] as? String == "device-1")
        #expect((body["data"] as? [Any])?.count == 3)
        #expect(metadata["total_records"] as? Int == 3)
        #expect(metadata["first_sequence"] as? Int == 1)
        #expect(metadata["last_sequence"] as? Int == 3)
        #expect(metadata["app_version"] as? String == "test")
        #expect(
            request.headers["idempotency-key"] == "\"\(metadata["batch_id"] as? String ?? "")\""
        )
        #expect(fixture.figures?.uploaded == 3)
    }

    @Test(arguments: [
        Behaviour.hangUp, .cut, .answer(status: 503, body: "busy"), .answer(status: 429, body: ""),
        .answer(status: 409, body: ""), .answer(status: 418, body: ""),
        .answer(status: 200, body: "<html>log in</html>"),
    ])
    func failure_sendsTheSameBytesUnderTheSameKeyNextTime(fault: Behaviour) throws {
        let isFaulty = Locked(true)
        let fixture = try UploadFixture { _ in isFaulty.value ? fault : .ok }
        defer { fixture.finish() }
        fixture.add(50)
        #expect(try !fixture.sync())
        #expect(fixture.figures?.pending == 50)
        #expect(fixture.figures?.quarantined == 0)
        #expect(fixture.board.state.value?.streams[.location]?.lastError != nil)
        fixture.add(5)
        isFaulty.update { $0 = false }
        #expect(try fixture.sync())
        let requests = fixture.server.requests
        let first = try #require(requests.first)
        let again = requests.filter {
            $0.headers["idempotency-key"] == first.headers["idempotency-key"]
        }
        #expect(again.count >= 2)
        #expect(again.allSatisfy { $0.body == first.body })
        #expect(fixture.figures?.uploaded == 55)
        #expect(fixture.board.state.value?.streams[.location]?.lastError == nil)
    }

    @Test(arguments: [
        (401, "E002", UploadReport.Phase.tokenRefused), (404, "E003", .endpointWrong),
        (301, "E003", .endpointWrong),
    ])
    func refusedTokenAndWrongEndpoint_holdAndLoseNothing(
        status: Int,
        code: String,
        phase: UploadReport.Phase
    ) throws {
        let fixture = try UploadFixture { _ in .answer(status: status, body: "no") }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        #expect(fixture.board.state.value?.phase == phase)
        #expect(
            fixture.board.state.value?.streams[.location]?.lastError?.failure.code?.rawValue == code
        )
        #expect(fixture.figures?.pending == 5)
    }

    @Test func poisonRecord_isFoundAndQuarantined_andNothingElse() throws {
        // Sequence 37 of 100 is refused wherever it appears.
        let fixture = try UploadFixture { request in
            let text = String(decoding: (try? gunzip(request.body)) ?? Data(), as: UTF8.self)
            return text.contains("\"longitude\":0.0000370,")
                ? .answer(status: 422, body: "bad longitude") : .ok
        }
        defer { fixture.finish() }
        fixture.add(100)
        #expect(try !fixture.sync())
        // About two requests per halving: the half with it, and the half without.
        #expect(fixture.server.requests.count <= 2 * 7 + 4)
        for _ in 2...4 { #expect(try fixture.result() == SyncResult(left: 1)) }
        #expect(fixture.figures?.quarantined == 0)
        #expect(try fixture.result() == SyncResult(left: 0, quarantined: 1))
        #expect(fixture.figures?.uploaded == 99)
        #expect(fixture.figures?.quarantined == 1)
        let quarantined = try fixture.queue.perform { try $0.quarantined() }
        #expect(quarantined.map(\.first) == [38])
        #expect(quarantined.first?.error == "HTTP 422: bad longitude")
        #expect(quarantined.first?.attempts == 5)
    }

    @Test func tooLargeForTheServer_isSplitUntilItFits() throws {
        let fixture = try UploadFixture { request in
            let body = (try? gunzip(request.body)) ?? Data()
            return body.count > 4000 ? .answer(status: 413, body: "") : .ok
        }
        defer { fixture.finish() }
        fixture.add(100)
        #expect(try fixture.sync())
        #expect(fixture.figures?.uploaded == 100)
    }

    @Test func batches_stayBelowTheConfiguredSize() throws {
        let fixture = try UploadFixture(maxBatchBytes: 16 << 10) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(500)
        #expect(try fixture.sync())
        let bodies = try fixture.server.requests.map { try gunzip($0.body).count }
        #expect(bodies.count > 2)
        #expect(bodies.allSatisfy { $0 <= 16 << 10 })
        #expect(fixture.figures?.uploaded == 500)
        #expect(fixture.server.connectionCount == 1)
    }

    @Test func noServer_isANetworkError() throws {
        let fixture = try UploadFixture(endpoint: "http://127.0.0.1:1/api/ingest") { _ in .ok }
        defer { fixture.finish() }
        fixture.add(1)
        #expect(try !fixture.sync())
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .network)
        #expect(failure?.message.hasPrefix("http://127.0.0.1:1/api/ingest: ") == true)
        #expect(fixture.figures?.pending == 1)
    }

    @Test func stop_endsARequestThatIsUnderWay() throws {
        let fixture = try UploadFixture { _ in .stall }
        fixture.add(1)
        fixture.tick()
        try waitUntil("the request is under way") { !fixture.server.requests.isEmpty }
        // `finish` joins the uploader: if it did not end, it would hang for the 30 s timeout and
        // the test's limit.
        fixture.finish()
    }

    @Test func largeBody_isStreamedWithItsLength() throws {
        // Too large to keep in memory once compressed: random audio does not shrink.
        let fixture = try UploadFixture(maxBatchBytes: 64 << 20) { _ in .ok }
        defer { fixture.finish() }
        let run = AudioRun(
            id: fixture.queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 2,
            overlapSegments: 0
        )
        fixture.queue.begin(run)
        for number in 0..<40 {
            let data = (0..<64_000).map { _ in UInt8.random(in: 0...255) }
            fixture.queue.accept(
                Segment(
                    run: run.id,
                    frames: 32_000,
                    start: SystemClock().stamp().advanced(by: .seconds(number)),
                    meanSquare: 0.1,
                    data: data
                )
            )
        }
        #expect(try fixture.sync())
        let request = try #require(fixture.server.requests.last)
        #expect(request.body.count > 1 << 20)
        let body = try #require(
            JSONSerialization.jsonObject(with: gunzip(request.body)) as? [String: Any]
        )
        let records = try #require(body["data"] as? [[String: Any]])
        #expect(records.count == 20)
        let file = try #require(Data(base64Encoded: records[0]["audio_data"] as? String ?? ""))
        #expect(file.count == 44 + 128_000)
        #expect(records[0]["duration"] as? Double == 4)
    }
}

/// Decompresses gzip.
func gunzip(_ bytes: [UInt8]) throws -> Data {
    var stream = z_stream()
    guard waypost_inflate_start(&stream, 31) == Z_OK else { throw NeverHappened(what: "zlib") }
    defer { inflateEnd(&stream) }
    var input = bytes
    var output = Data()
    var block = [UInt8](repeating: 0, count: 64 << 10)
    var code = Z_OK
    input.withUnsafeMutableBufferPointer { input in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        while code == Z_OK {
            let count = block.withUnsafeMutableBufferPointer { block -> Int in
                stream.next_out = block.baseAddress
                stream.avail_out = UInt32(block.count)
                code = inflate(&stream, Z_NO_FLUSH)
                return block.count - Int(stream.avail_out)
            }
            output.append(contentsOf: block.prefix(count))
        }
    }
    guard code == Z_STREAM_END else { throw NeverHappened(what: "the end of the gzip stream") }
    return output
}
