import Configuration
import Foundation
import Host
import HTTP
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Upload

/// The uploader's settings as one value.
@dynamicMemberLookup struct BenchSettings {
    var upload: UploadSettings
    var destination: DestinationSettings

    subscript<Value>(dynamicMember path: WritableKeyPath<DestinationSettings, Value>) -> Value {
        get { destination[keyPath: path] }
        set { destination[keyPath: path] = newValue }
    }

    func uploader(
        _ queue: Queue,
        _ board: Publisher<UploadReport> = Publisher(),
        clock: any HostClock = SystemClock()
    ) -> Uploader {
        let destination = destination
        return Uploader(settings: upload, queue: queue, board: board, clock: clock) {
            try destination.open(queue)
        }
    }
}

/// A queue and an uploader against a server; removed with the test.
final class UploadFixture {
    let folder: String
    let queue: Queue
    let board = Publisher<UploadReport>()
    let server: FaultyServer
    private let uploader: Uploader
    private let stop: StopSignal
    private var thread: OwnThread?

    init(
        maxBatchBytes: Int = 8 << 20,
        endpoint: String? = nil,
        clock: any HostClock = SystemClock(),
        timeout: Duration = .seconds(30),
        change: (inout BenchSettings) -> Void = { _ in },
        _ behaviour: @escaping @Sendable (Request) -> Behaviour
    ) throws {
        folder = NSTemporaryDirectory() + "waypost-upload-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        queue = try Queue(at: folder + "/queue.sqlite", clock: clock)
        server = try FaultyServer(behaviour)
        var transport = TransportSettings(
            endpoint: endpoint ?? server.endpoint,
            userAgent: "waypost/test"
        )
        transport.timeout = timeout
        var settings = BenchSettings(
            upload: UploadSettings {
                $0.maxBatchBytes = maxBatchBytes
                $0.clockPatience = .zero
            },
            destination: DestinationSettings(
                transport: transport,
                deviceID: "device-1",
                streamNames: [
                    .location: "places", .beacons: "beacons", .audio: "audio", .events: "events",
                ],
                token: { "secret" }
            )
        )
        change(&settings)
        let uploader = settings.uploader(queue, board, clock: clock)
        let stop = try StopSignal()
        self.uploader = uploader
        self.stop = stop
        thread = try OwnThread("uploader") { uploader.run(until: stop) }
    }

    func add(_ count: Int) { addFixes(count, to: queue) }

    func addSightings(_ count: Int) { addBeacons(count, to: queue) }

    func addAudio(chunks: Int, frames: Int = 16_000) {
        addChunks(chunks, frames: frames, to: queue)
    }

    func tick() { uploader.tick() }

    func ask(_ done: @escaping @Sendable (Bool) -> Void) { uploader.sync { done($0.isDone) } }

    /// Runs one sync; returns whether nothing was left.
    func sync() throws -> Bool { try result().isDone }

    /// Runs one sync.
    func result() throws -> SyncResult {
        let answer = Locked<SyncResult?>(nil)
        uploader.sync { result in answer.update { $0 = result } }
        try waitUntil("the sync ends") { answer.value != nil }
        return answer.value ?? SyncResult()
    }

    var figures: StreamStatistics? {
        try? queue.flushed().statistics().first { $0.stream == .location }
    }

    func requestStop() {
        uploader.stop()
        stop.raise()
    }

    func finish() {
        requestStop()
        if let thread = thread.take() { thread.join() }
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

/// Adds chunks of one incompressible segment each: PCM, two bytes per frame.
func addChunks(
    _ count: Int,
    frames: Int = 16_000,
    at clock: any HostClock = SystemClock(),
    to queue: Queue
) {
    let run = AudioRun(
        id: queue.newRunID(),
        codec: .wav,
        rate: 16_000,
        device: "mic",
        chunkSegments: 1,
        overlapSegments: 0
    )
    queue.begin(run)
    for _ in 0..<count {
        queue.accept(
            Segment(
                run: run.id,
                frames: frames,
                start: clock.stamp(),
                meanSquare: 0.1,
                data: [UInt8](repeating: 7, count: 2 * frames)
            )
        )
    }
    queue.end(run: run.id)
}

/// Returns the details of all events of a kind in a queue, in order.
func eventDetails(_ queue: Queue, _ kind: EventKind) throws -> [String] {
    let last = try queue.flushed().newest(.events)
    guard last > 0 else { return [] }
    var details: [String] = []
    try queue.reader().rows(Event.kind, 1...last) { stored in
        guard case .text(kind.rawValue) = stored.record.values[0],
            case .text(let detail) = stored.record.values[2]
        else { return }
        details.append(detail)
    }
    return details
}

/// Adds sightings of ten beacons in turn.
func addBeacons(_ count: Int, to queue: Queue) {
    for number in 0..<count {
        queue.accept(testSighting(number, at: SystemClock().stamp()))
    }
}
