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

/// A metered link: syncs and clock driven by the test, a real queue and a real server.
final class BudgetFixture {
    /// 2026-11-21T00:00:00Z.
    static let midnight = WallTime(milliseconds: 1_795_219_200_000)

    let temporary: TemporaryFolder
    let clock: ManualClock
    let server: FaultyServer
    let board = Publisher<UploadReport>()
    private(set) var queue: Queue
    private(set) var sync: Upload.Sync
    private let settings: UploadSettings
    private let sound: SoundUpload
    let destination: DestinationSettings

    init(
        _ settings: UploadSettings,
        hour: Double = 0,
        isSynced: Bool = true,
        region: String? = nil,
        sound: SoundUpload = SoundUpload(),
        temporary: TemporaryFolder = TemporaryFolder(),
        _ behaviour: @escaping @Sendable (Request) -> Behaviour = { _ in .ok }
    ) throws {
        clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 1_000_000_000_000),
                wall: Self.midnight + .milliseconds(Int64(hour * 3_600_000))
            )
        )
        server = try FaultyServer(behaviour)
        destination = DestinationSettings(
            transport: TransportSettings(endpoint: server.endpoint, userAgent: "waypost/test"),
            region: region,
            deviceID: "device-1",
            streamNames: [.location: "places", .audio: "audio", .events: "events"],
            compression: .none,
            token: { "ID:secret" }
        )
        (self.settings, self.temporary, self.sound) = (settings, temporary, sound)
        (queue, sync) = try Self.open(temporary.path, clock, settings, destination, board, sound)
        if isSynced { try recordClock(isSynced: true) }
    }

    private static func open(
        _ folder: String,
        _ clock: ManualClock,
        _ settings: UploadSettings,
        _ destination: DestinationSettings,
        _ board: Publisher<UploadReport>,
        _ sound: SoundUpload
    ) throws -> (Queue, Upload.Sync) {
        let queue = try Queue(at: folder + "/queue.sqlite", clock: clock) {
            $0.sound = StateBox(sound)
            $0.userStreams = sound.markingStreams.map { DeclaredStream(name: $0, wire: $0) }
        }
        return (queue, try sync(queue, clock, settings, destination, board))
    }

    private static func sync(
        _ queue: Queue,
        _ clock: ManualClock,
        _ settings: UploadSettings,
        _ destination: DestinationSettings,
        _ board: Publisher<UploadReport>
    ) throws -> Upload.Sync {
        Upload.Sync(
            settings: settings,
            queue: queue,
            destination: try destination.open(queue),
            clock: clock,
            random: { 0.5 },
            board: board,
            stop: try StopSignal()
        )
    }

    func finish() {
        queue.close()
        server.close()
    }

    /// Ends the program and starts it again.
    func restart() throws {
        queue.close()
        (queue, sync) = try Self.open(temporary.path, clock, settings, destination, board, sound)
    }

    /// Changes the settings, as a reload does.
    func reload(_ settings: UploadSettings) throws {
        sync = try Self.sync(queue, clock, settings, destination, board)
    }

    func recordClock(isSynced: Bool) throws {
        let stamp = clock.stamp()
        try queue.perform { try $0.recordClock(stamp, synced: isSynced) }
    }

    /// Reports a GNSS receiver's time, which does not set the wall clock.
    func receiver(saysHour hour: Double) throws {
        let right = Self.midnight + .milliseconds(Int64(hour * 3_600_000))
        let stamp = Stamp(boot: clock.now(), wall: right)
        try queue.perform { try $0.recordClock(stamp, synced: true, by: .gpsd) }
    }

    /// Advances the wall clock and boot time.
    func pass(hours: Double) { clock.advance(by: .milliseconds(Int64(hours * 3_600_000))) }

    /// Adds audio chunks of 43 kB each, as sent.
    func addAudio(_ chunks: Int) { addChunks(chunks, at: clock, to: queue) }

    /// Bytes of the bodies of all requests so far, as the server received them.
    var bodies: Int { server.requests.reduce(0) { $0 + $1.body.count } }

    /// Bytes of the bodies of one stream.
    func bodies(of name: String) -> Int {
        let requests = server.requests.filter {
            String(decoding: $0.body.prefix(60), as: UTF8.self).contains(name)
        }
        return requests.reduce(0) { $0 + $1.body.count }
    }

    func pending(_ stream: Records.Stream) throws -> Int {
        try queue.flushed().statistics().first { $0.stream == stream }?.pending ?? -1
    }

    var phase: UploadReport.Phase? { board.state.value?.phase }
}

extension UploadSettings {
    static func budget(_ bytes: Int64, _ change: (inout Self) -> Void = { _ in }) -> Self {
        Self {
            $0.clockPatience = .zero
            $0.dailyBudget = bytes
            change(&$0)
        }
    }
}
