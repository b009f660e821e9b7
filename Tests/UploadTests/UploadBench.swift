import Board
import Foundation
import Host
import Store
import Upload

/// A queue and an uploader against a server; gone with the test.
final class UploadBench {
    let folder: String
    let queue: Queue
    let board = Publisher<UploadReport>()
    let server: FaultyServer
    private let uploader: Uploader
    private let stop: StopSignal
    private var lane: Lane?

    init(
        maxBatchBytes: Int = 8 << 20,
        endpoint: String? = nil,
        clock: any HostClock = SystemClock(),
        timeout: Duration = .seconds(30),
        change: (inout UploadSettings) -> Void = { _ in },
        _ behaviour: @escaping @Sendable (Request) -> Behaviour
    ) throws {
        folder = NSTemporaryDirectory() + "waypost-upload-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        queue = try Queue(
            settings: QueueSettings(
                path: folder + "/queue.sqlite",
                bootID: "boot",
                clock: clock,
                appVersion: "1.2.3"
            )
        )
        server = try FaultyServer(behaviour)
        var transport = TransportSettings(
            endpoint: endpoint ?? server.endpoint,
            userAgent: "waypost/test"
        )
        transport.timeout = timeout
        var settings = UploadSettings(
            transport: transport,
            deviceID: "device-1",
            streamNames: [
                .location: "places", .beacons: "beacons", .audio: "audio", .events: "events",
            ],
            maxBatchBytes: maxBatchBytes,
            clockPatience: .zero,
            token: { "secret" }
        )
        change(&settings)
        let uploader = Uploader(settings: settings, queue: queue, board: board, clock: clock)
        let stop = try StopSignal()
        self.uploader = uploader
        self.stop = stop
        lane = try Lane("uploader") { try? uploader.run(until: stop) }
    }

    func add(_ count: Int) { addFixes(count, to: queue) }

    /// Chunks of one segment each that do not shrink: PCM, two bytes a frame.
    func addSound(chunks: Int, frames: Int = 16_000) {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 16_000,
            device: "mic",
            chunkSegments: 1,
            overlapSegments: 0
        )
        queue.begin(run)
        for _ in 0..<chunks {
            queue.accept(
                Segment(
                    run: run.id,
                    frames: frames,
                    start: SystemClock().stamp(),
                    meanSquare: 0.1,
                    data: [UInt8](repeating: 7, count: 2 * frames)
                )
            )
        }
        queue.end(run: run.id)
    }

    func tick() { uploader.tick() }

    func ask(_ done: @escaping @Sendable (Bool) -> Void) { uploader.sync(done) }

    /// One sync; whether nothing was left.
    func sync() throws -> Bool {
        let answer = Locked<Bool?>(nil)
        uploader.sync { done in answer.update { $0 = done } }
        try waitUntil("the sync ends") { answer.value != nil }
        return answer.value ?? false
    }

    var figures: StreamStatistics? {
        try? queue.perform { try $0.statistics() }.first { $0.stream == .location }
    }

    func requestStop() {
        uploader.stop()
        stop.raise()
    }

    func finish() {
        requestStop()
        if let lane = lane.take() { lane.join() }
        queue.close()
        server.close()
        try? FileManager.default.removeItem(atPath: folder)
    }
}

func addFixes(_ count: Int, to queue: Queue) {
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
