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
        let bench = try UploadBench { _ in .ok }
        defer { bench.finish() }
        bench.add(3)
        #expect(try bench.sync())
        let request = try #require(bench.server.requests.first)
        #expect(bench.server.requests.count == 1)
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
        #expect(bench.figures?.uploaded == 3)
    }

    @Test(arguments: [
        Behaviour.hangUp, .cut, .answer(status: 503, body: "busy"), .answer(status: 429, body: ""),
        .answer(status: 409, body: ""), .answer(status: 418, body: ""),
        .answer(status: 200, body: "<html>log in</html>"),
    ])
    func failure_sendsTheSameBytesUnderTheSameKeyNextTime(fault: Behaviour) throws {
        let isFaulty = Locked(true)
        let bench = try UploadBench { _ in isFaulty.value ? fault : .ok }
        defer { bench.finish() }
        bench.add(50)
        #expect(try !bench.sync())
        #expect(bench.figures?.pending == 50)
        #expect(bench.figures?.quarantined == 0)
        #expect(bench.board.state.value?.streams[.location]?.lastError != nil)
        bench.add(5)
        isFaulty.update { $0 = false }
        #expect(try bench.sync())
        let requests = bench.server.requests
        let first = try #require(requests.first)
        let again = requests.filter {
            $0.headers["idempotency-key"] == first.headers["idempotency-key"]
        }
        #expect(again.count >= 2)
        #expect(again.allSatisfy { $0.body == first.body })
        #expect(bench.figures?.uploaded == 55)
        #expect(bench.board.state.value?.streams[.location]?.lastError == nil)
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
        let bench = try UploadBench { _ in .answer(status: status, body: "no") }
        defer { bench.finish() }
        bench.add(5)
        #expect(try !bench.sync())
        #expect(bench.board.state.value?.phase == phase)
        #expect(
            bench.board.state.value?.streams[.location]?.lastError?.failure.code?.rawValue == code
        )
        #expect(bench.figures?.pending == 5)
    }

    @Test func poisonRecord_isFoundAndQuarantined_andNothingElse() throws {
        // Sequence 37 of 100 is refused wherever it appears.
        let bench = try UploadBench { request in
            let text = String(decoding: (try? gunzip(request.body)) ?? Data(), as: UTF8.self)
            return text.contains("\"longitude\":0.0000370,")
                ? .answer(status: 422, body: "bad longitude") : .ok
        }
        defer { bench.finish() }
        bench.add(100)
        #expect(try !bench.sync())
        // About two requests per halving: the half with it, and the half without.
        #expect(bench.server.requests.count <= 2 * 7 + 4)
        for _ in 2...4 { #expect(try bench.result() == SyncResult(left: 1)) }
        #expect(bench.figures?.quarantined == 0)
        #expect(try bench.result() == SyncResult(left: 0, quarantined: 1))
        #expect(bench.figures?.uploaded == 99)
        #expect(bench.figures?.quarantined == 1)
        let quarantined = try bench.queue.perform { try $0.quarantined() }
        #expect(quarantined.map(\.first) == [38])
        #expect(quarantined.first?.error == "HTTP 422: bad longitude")
        #expect(quarantined.first?.attempts == 5)
    }

    @Test func tooLargeForTheServer_isSplitUntilItFits() throws {
        let bench = try UploadBench { request in
            let body = (try? gunzip(request.body)) ?? Data()
            return body.count > 4000 ? .answer(status: 413, body: "") : .ok
        }
        defer { bench.finish() }
        bench.add(100)
        #expect(try bench.sync())
        #expect(bench.figures?.uploaded == 100)
    }

    @Test func batches_stayBelowTheConfiguredSize() throws {
        let bench = try UploadBench(maxBatchBytes: 16 << 10) { _ in .ok }
        defer { bench.finish() }
        bench.add(500)
        #expect(try bench.sync())
        let bodies = try bench.server.requests.map { try gunzip($0.body).count }
        #expect(bodies.count > 2)
        #expect(bodies.allSatisfy { $0 <= 16 << 10 })
        #expect(bench.figures?.uploaded == 500)
        #expect(bench.server.connectionCount == 1)
    }

    @Test func noServer_isANetworkError() throws {
        let bench = try UploadBench(endpoint: "http://127.0.0.1:1/api/ingest") { _ in .ok }
        defer { bench.finish() }
        bench.add(1)
        #expect(try !bench.sync())
        let failure = bench.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .network)
        #expect(failure?.message.hasPrefix("http://127.0.0.1:1/api/ingest: ") == true)
        #expect(bench.figures?.pending == 1)
    }

    @Test func stop_endsARequestThatIsUnderWay() throws {
        let bench = try UploadBench { _ in .stall }
        bench.add(1)
        bench.tick()
        try waitUntil("the request is under way") { !bench.server.requests.isEmpty }
        // `finish` joins the uploader: if it did not end, it would hang for the 30 s timeout and
        // the test's limit.
        bench.finish()
    }

    @Test func largeBody_isStreamedWithItsLength() throws {
        // Too large to keep in memory once compressed: random audio does not shrink.
        let bench = try UploadBench(maxBatchBytes: 64 << 20) { _ in .ok }
        defer { bench.finish() }
        let run = AudioRun(
            id: bench.queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 2,
            overlapSegments: 0
        )
        bench.queue.begin(run)
        for number in 0..<40 {
            let data = (0..<64_000).map { _ in UInt8.random(in: 0...255) }
            bench.queue.accept(
                Segment(
                    run: run.id,
                    frames: 32_000,
                    start: SystemClock().stamp().advanced(by: .seconds(number)),
                    meanSquare: 0.1,
                    data: data
                )
            )
        }
        #expect(try bench.sync())
        let request = try #require(bench.server.requests.last)
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
