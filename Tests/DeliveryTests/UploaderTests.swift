// The gateway's uploader with the real receiver.
import Configuration
import Foundation
import Host
import HTTP
import Queue
import QueueSupport
import ReceiverSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct UploaderToReceiverTests {
    /// Calls `body` with a queue of `count` fixes, deleted afterwards.
    private func withQueue(_ count: Int, _ body: (Queue) throws -> Void) throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let queue = try Queue(at: folder + "/q.sqlite")
        defer { queue.close() }
        for number in 0..<count {
            queue.accept(
                Fix(
                    stamp: SystemClock().stamp(),
                    mode: .twoDimensional,
                    latitude: Double(number) / 1000,
                    longitude: 7.5
                )
            )
        }
        try body(queue)
    }

    @Test(arguments: Compression.allCases)
    func eachCompression_bringsEachRecordOnce(compression: Compression) throws {
        let receiver = try ReceiverProcess()
        try withQueue(700) { queue in
            let settings = DestinationSettings(
                transport: receiver.transport,
                deviceID: "device-1",
                streamNames: [.location: "places"],
                compression: compression,
                token: { "secret" }
            )
            let isDone = try syncOnce(queue, settings)
            #expect(isDone)
        }
        let records = try receiver.records("places")
        #expect(records.count == 700)
        #expect(Set(records.compactMap { $0["id"] as? String }).count == 700)
    }

    @Test func uploader_usesAnEncodingTheServerAccepts() throws {
        let receiver = try ReceiverProcess()
        let exchange = try Transport(receiver.transport).send(
            HTTPRequest(
                posting: RequestBody([0]),
                headers: [
                    "Content-Type: application/json", "X-Device-Token: secret",
                    "Idempotency-Key: \"\(UUID().uuidString)\"", "Content-Encoding: br",
                ]
            ),
            until: try StopSignal()
        )
        guard case .answered(let answer) = exchange else {
            Issue.record("no answer: \(exchange)")
            return
        }
        #expect(answer.status == 415)
        var choice = CompressionChoice(.zstd)
        let hasFallenBack = choice.fallBack(accepting: answer.acceptEncoding)
        #expect(hasFallenBack)
        #expect(choice.current == .gzip)
    }
}

extension ReceiverProcess {
    /// How an uploader reaches it.
    var transport: TransportSettings {
        TransportSettings(
            endpoint: base.absoluteString + "/api/ingest",
            userAgent: "waypost/test"
        )
    }
}

/// Runs one sync; returns whether nothing was left.
func syncOnce(
    _ queue: Queue,
    _ destination: DestinationSettings,
    maxBatchBytes: Int = 50_000
) throws -> Bool {
    let uploader = Uploader(
        settings: UploadSettings {
            $0.maxBatchBytes = maxBatchBytes
            $0.clockPatience = .zero
        },
        queue: queue,
        board: Publisher<UploadReport>()
    ) { try destination.open(queue) }
    let stop = try StopSignal()
    let thread = try OwnThread("uploader") { uploader.run(until: stop) }
    let isDone = Locked<Bool?>(nil)
    uploader.sync { outcome in isDone.update { $0 = outcome.isDone } }
    try waitUntil("the sync") { isDone.value != nil }
    uploader.stop()
    stop.raise()
    thread.join()
    return try #require(isDone.value as Bool?)
}
