// Runs a queue with uploads to a bucket.
import Configuration
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing

import HTTP
import Upload

/// A queue and a series of uploaders to a bucket, as after restarts of a gateway.
final class BucketFixture {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    let queue: Queue
    let board = Publisher<UploadReport>()
    var settings: BenchSettings
    private var uploader: Uploader?
    private var stop: StopSignal?
    private var thread: OwnThread?

    init(
        url: String,
        keys: String = "id:secret",
        compression: Compression = .zstd,
        maxBatchBytes: Int = 8 << 20
    ) throws {
        queue = try Queue(at: temporary.path + "/queue.sqlite")
        settings = BenchSettings(
            upload: UploadSettings {
                $0.maxBatchBytes = maxBatchBytes
                $0.clockPatience = .zero
            },
            destination: DestinationSettings(
                transport: TransportSettings(endpoint: url, userAgent: "waypost/test"),
                region: "us-east-1",
                deviceID: "device-1",
                streamNames: [
                    .location: "places", .beacons: "beacons", .audio: "audio",
                    .events: "events",
                ],
                compression: compression,
                token: { keys }
            )
        )
        try start()
    }

    func start() throws {
        let uploader = settings.uploader(queue, board)
        let stop = try StopSignal()
        (self.uploader, self.stop) = (uploader, stop)
        thread = try OwnThread("uploader") { uploader.run(until: stop) }
    }

    func end() {
        uploader?.stop()
        stop?.raise()
        if let thread = thread.take() { thread.join() }
    }

    func finish() {
        end()
        queue.close()
    }

    /// Adds fixes one second apart, from a point in time on.
    func add(_ count: Int, from start: String = "2026-11-21T23:59:50.000Z") throws {
        let wall = try #require(WallTime(rfc3339: start))
        for number in 0..<count {
            let stamp = Stamp(
                boot: SystemClock().now(),
                wall: wall + .milliseconds(Int64(number) * 1000)
            )
            queue.accept(
                Fix(
                    stamp: stamp,
                    mode: .threeDimensional,
                    latitude: 46.5,
                    longitude: Double(number) / 1e6
                )
            )
        }
    }

    /// Adds audio chunks of two seconds, in a run of their own, from a point in time on.
    func addChunks(_ count: Int, from start: String) throws {
        let wall = try #require(WallTime(rfc3339: start))
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "test",
            chunkSegments: 1,
            overlapSegments: 0
        )
        queue.begin(run)
        let first = Stamp(boot: SystemClock().now(), wall: wall)
        for number in 0..<count {
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 32_000,
                    start: first.advanced(by: .seconds(number * 2)),
                    meanSquare: 0.1,
                    data: [UInt8](repeating: 7, count: 64_000)
                )
            )
        }
        queue.end(run: run.id)
    }

    /// Adds audio chunks of 4 s.
    func addAudio(_ codec: AudioCodec, chunks: Int, segmentBytes: Int) {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: codec,
            rate: 16_000,
            device: "test",
            chunkSegments: 2,
            overlapSegments: 0
        )
        queue.begin(run)
        for number in 0..<(chunks * 2) {
            var data: [UInt8] = []
            if codec == .opus {
                for _ in 0..<101 { data += [3, 0, 8, UInt8(number), 1] }
            } else {
                data = (0..<segmentBytes).map { _ in UInt8.random(in: 0...255) }
            }
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 32_000,
                    start: SystemClock().stamp().advanced(by: .seconds(number * 2)),
                    meanSquare: 0.1,
                    data: data
                )
            )
        }
    }

    func tick() { uploader?.tick() }

    /// Runs one sync; returns whether nothing was left.
    func sync() throws -> Bool {
        let answer = Locked<Bool?>(nil)
        uploader?.sync { result in answer.update { $0 = result.isDone } }
        try waitUntil("the sync ends") { answer.value != nil }
        return answer.value ?? false
    }

    func figures(_ stream: Records.Stream) throws -> StreamStatistics {
        try #require(queue.flushed().statistics().first { $0.stream == stream })
    }

    func error(_ stream: Records.Stream) -> Failure? {
        board.state.value?.streams[stream]?.lastError?.failure
    }
}
