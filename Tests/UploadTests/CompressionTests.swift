// Compression of bodies, and the effect of a 415.
import Configuration
import CZstd
import Foundation
import Glibc
import Host
import HTTP
import Queue
import QueueSupport
import Records
import Support
import Testing
import Upload

@Suite struct CompressionTests {
    /// A queue and an uploader against a server; removed with the test.
    private final class Fixture {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let queue: Queue
        let server: FaultyServer
        private let uploader: Uploader
        private let stop: StopSignal
        private var thread: OwnThread?

        init(
            _ compression: Compression,
            maxBatchBytes: Int = 8 << 20,
            _ behaviour: @escaping @Sendable (Request) -> Behaviour
        ) throws {
            queue = try Queue(at: temporary.path + "/q.sqlite")
            server = try FaultyServer(behaviour)
            let uploader = BenchSettings(
                upload: UploadSettings {
                    $0.maxBatchBytes = maxBatchBytes
                    $0.clockPatience = .zero
                },
                destination: DestinationSettings(
                    transport: TransportSettings(endpoint: server.endpoint, userAgent: "test"),
                    deviceID: "device-1",
                    streamNames: [.location: "places", .audio: "audio"],
                    compression: compression,
                    token: { "secret" }
                )
            ).uploader(queue)
            let stop = try StopSignal()
            self.uploader = uploader
            self.stop = stop
            thread = try OwnThread("uploader") { uploader.run(until: stop) }
        }

        func add(_ count: Int) {
            for number in 0..<count {
                queue.accept(
                    Fix(
                        stamp: SystemClock().stamp(),
                        mode: .threeDimensional,
                        latitude: 46.5,
                        longitude: Double(number) / 1e6
                    )
                )
            }
        }

        /// Adds more than a megabyte that does not compress.
        func addAudio() {
            let run = AudioRun(
                id: queue.newRunID(),
                codec: .wav,
                rate: 16_000,
                device: "test",
                chunkSegments: 2,
                overlapSegments: 0
            )
            queue.begin(run)
            for number in 0..<40 {
                queue.accept(
                    Segment(
                        run: run.id,
                        frames: 32_000,
                        start: SystemClock().stamp().advanced(by: .seconds(number)),
                        meanSquare: 0.1,
                        data: (0..<64_000).map { _ in UInt8.random(in: 0...255) }
                    )
                )
            }
        }

        /// Runs one sync; returns whether nothing was left.
        func sync() throws -> Bool {
            let answer = Locked<Bool?>(nil)
            uploader.sync { result in answer.update { $0 = result.isDone } }
            try waitUntil("the sync ends") { answer.value != nil }
            return answer.value ?? false
        }

        /// The encodings of the requests so far, `-` for none.
        var encodings: [String] { server.requests.map { $0.headers["content-encoding"] ?? "-" } }

        func location() throws -> StreamStatistics? {
            try queue.flushed().statistics().first { $0.stream == .location }
        }

        func finish() {
            uploader.stop()
            stop.raise()
            if let thread = thread.take() { thread.join() }
            queue.close()
            server.close()
        }
    }

    /// Accepts only bodies of one encoding, and names `accepting` in its 415.
    private static func only(
        _ encoding: String?,
        accepting: String?
    ) -> @Sendable (Request) -> Behaviour {
        { request in
            guard request.headers["content-encoding"] != encoding else { return .ok }
            let headers = accepting.map { ["Accept-Encoding: \($0)"] } ?? []
            return .answer(status: 415, body: "not this encoding", headers: headers)
        }
    }

    private static func plain(_ request: Request) throws -> Data {
        switch request.headers["content-encoding"] {
        case "gzip": try gunzip(request.body)
        case "zstd": try unzstd(request.body)
        default: Data(request.body)
        }
    }

    @Test(arguments: Compression.allCases)
    func eachEncoding_saysWhatItIs_andHoldsTheSameBatch(compression: Compression) throws {
        let fixture = try Fixture(compression) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(1000)
        #expect(try fixture.sync())
        let request = try #require(fixture.server.requests.first)
        #expect(request.headers["content-encoding"] == compression.contentEncoding)
        let json = try JSONSerialization.jsonObject(with: Self.plain(request))
        let body = try #require(json as? [String: Any])
        #expect((body["data"] as? [Any])?.count == 1000)
        #expect(try fixture.location()?.uploaded == 1000)
    }

    /// A body that is not kept in memory, and one with a page that the limit cuts.
    @Test(arguments: Compression.allCases, [8 << 20, 60_000])
    func retry_isTheSameBytes_whateverTheCompression(
        compression: Compression,
        limit: Int
    ) throws {
        let isFaulty = Locked(true)
        let fixture = try Fixture(compression, maxBatchBytes: limit) { _ in
            isFaulty.value ? .hangUp : .ok
        }
        defer { fixture.finish() }
        if limit > 1 << 20 { fixture.addAudio() } else { fixture.add(900) }
        #expect(try !fixture.sync())
        // The first try sends the draft's body, the others read the database again.
        #expect(try !fixture.sync())
        isFaulty.update { $0 = false }
        #expect(try fixture.sync())
        let requests = fixture.server.requests
        let tries = Dictionary(grouping: requests) { $0.headers["idempotency-key"] ?? "" }
        let first = requests.first?.headers["idempotency-key"] ?? ""
        #expect(tries[first]?.count ?? 0 >= 3)
        #expect(tries.values.allSatisfy { Set($0.map(\.body)).count == 1 })
        for request in requests {
            #expect(try JSONSerialization.jsonObject(with: Self.plain(request)) is [String: Any])
        }
    }

    /// A proxy refused compressed bodies for a while, or the server was replaced.
    @Test func serverThatChangesItsMind_getsWhatItTakesNow() throws {
        let taken = Locked<String?>(nil)
        let fixture = try Fixture(.gzip) { Self.only(taken.value, accepting: nil)($0) }
        defer { fixture.finish() }
        fixture.add(50)
        #expect(try fixture.sync())
        taken.update { $0 = "gzip" }
        fixture.add(50)
        // The next sync retries the refused body with the original compression.
        #expect(try !fixture.sync())
        #expect(try fixture.sync())
        #expect(fixture.encodings == ["gzip", "-", "-", "gzip"])
        #expect(try fixture.location()?.uploaded == 100)
    }

    @Test(arguments: [
        (Compression.zstd, "gzip" as String?, "gzip" as String?, ["zstd", "gzip", "gzip"]),
        (.zstd, "gzip", "identity;q=0.5, GZIP;q=1.0", ["zstd", "gzip", "gzip"]),
        (.zstd, nil, nil, ["zstd", "-", "-"]),
        (.zstd, nil, "zstd, gzip;q=0", ["zstd", "-", "-"]),
        (.zstd, nil, "gzip", ["zstd", "gzip", "-", "-"]),
        (.gzip, nil, nil, ["gzip", "-", "-"]),
        (.gzip, "zstd", "zstd, br", ["gzip", "zstd", "zstd"]),
        (.gzip, nil, "gzip, deflate", ["gzip", "-", "-"]),
    ])
    func unsupportedEncoding_isAbandoned_forTheRestOfTheRun(
        configured: Compression,
        taken: String?,
        accepting: String?,
        expected: [String]
    ) throws {
        let fixture = try Fixture(configured, Self.only(taken, accepting: accepting))
        defer { fixture.finish() }
        fixture.add(50)
        #expect(try fixture.sync())
        fixture.add(50)
        #expect(try fixture.sync())
        #expect(fixture.encodings == expected)
        let requests = fixture.server.requests
        let first = requests.dropLast()
        #expect(Set(first.map { $0.headers["idempotency-key"] }).count == 1)
        let bodies = try first.map(Self.plain)
        #expect(Set(bodies).count == 1)
        let figures = try fixture.location()
        #expect(figures?.uploaded == 100)
        #expect(figures?.quarantined == 0)
    }

    @Test func fallingBack_isNoAttemptAgainstTheBatch() throws {
        // Neither the 415 nor the busy server after it has evaluated the records.
        let fixture = try Fixture(.zstd) { request in
            guard request.headers["content-encoding"] == nil else {
                return .answer(status: 415, body: "")
            }
            return request.body.count > 4000 ? .answer(status: 503, body: "") : .ok
        }
        defer { fixture.finish() }
        fixture.add(100)
        #expect(try !fixture.sync())
        #expect(fixture.encodings == ["zstd", "-"])
        let batch = try #require(try fixture.queue.flushed().nextReady(.location))
        #expect(batch.attempts == 0)
        #expect(batch.error == nil)
        #expect(batch.records == 100)
    }

    @Test func serverRejectingAllEncodings_isNotRetriedForever() throws {
        let fixture = try Fixture(.zstd) { _ in
            .answer(status: 415, body: "no", headers: ["Accept-Encoding: gzip, zstd"])
        }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        #expect(fixture.encodings == ["zstd", "gzip", "-"])
        #expect(try fixture.location()?.pending == 5)
        #expect(try fixture.location()?.quarantined == 0)
    }

    @Test func anotherUploader_beginsWithWhatIsConfigured() {
        var choice = CompressionChoice(.gzip)
        let hasFallenBack = choice.fallBack(accepting: "")
        #expect(hasFallenBack)
        #expect(choice.current == .none)
        #expect(CompressionChoice(.gzip).current == .gzip)
    }

    /// Audio is compressed already; compression removes the base64 overhead, and silence shrinks to
    /// nearly nothing.
    @Test func sound_losesItsBase64_andComesBackWhole() throws {
        var random = SeededRandom(seed: 1)
        let sound = (0..<90_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        for (bytes, limit) in [(sound, 92_000), ([UInt8](repeating: 0, count: 90_000), 1000)] {
            let text = Array(Data(bytes).base64EncodedString().utf8)
            var compressor = PieceCompressor(.gzip, .audio)
            var small: [UInt8] = []
            for start in stride(from: 0, to: text.count, by: 8192) {
                small += try compressor.receive(Array(text[start..<min(start + 8192, text.count)]))
            }
            small += try compressor.receive([], isLast: true)
            #expect(small.count < limit)
            #expect(try Array(gunzip(small)) == text)
        }
    }
}

/// Decompresses zstd.
func unzstd(_ bytes: [UInt8]) throws -> Data {
    guard let stream = ZSTD_createDStream() else { throw NeverHappened(what: "zstd") }
    defer { ZSTD_freeDStream(stream) }
    var output = Data()
    var block = [UInt8](repeating: 0, count: 64 << 10)
    var rest = 1
    try bytes.withUnsafeBytes { bytes in
        var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
        while rest != 0 {
            let before = input.pos
            let count = block.withUnsafeMutableBytes { block -> Int in
                var room = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
                rest = ZSTD_decompressStream(stream, &room, &input)
                return room.pos
            }
            output.append(contentsOf: block.prefix(count))
            guard ZSTD_isError(rest) == 0, count > 0 || input.pos > before || rest == 0 else {
                throw NeverHappened(what: "the end of the zstd frame")
            }
        }
    }
    return output
}
