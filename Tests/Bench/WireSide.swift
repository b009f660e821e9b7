// A site's syncs over a real connection, for what they cost on the wire.
import Configuration
import HTTP
import Host
import Queue
import Records
import StatusBoard
import Upload

enum WireSide {
    /// The sightings of five minutes.
    private static let sightings = 3000

    /// Makes `rows` syncs, each with the sightings, fixes and health of five minutes, and each over a
    /// connection of its own: five minutes later the one before is closed.
    static func run(_ task: SideTask) throws -> Figures {
        let queue = try task.queue()
        defer { queue.close() }
        let sync = Sync(
            settings: UploadSettings {
                $0.endpoint = task.endpoint
                $0.clockPatience = .zero
            },
            queue: queue,
            destination: try task.destination.open(queue),
            clock: SystemClock(),
            random: { 0 },
            board: Publisher(),
            stop: try StopSignal()
        )
        var site = try Site(hasFixes: true)
        for number in 0..<task.rows {
            try site.give(sightings, to: queue)
            queue.accept(health(number, at: site.now))
            try queue.perform { _ in }
            guard sync.perform(.network).isDone else { throw BenchFailure("a sync is not done") }
        }
        return Figures()
    }

    private static func health(_ number: Int, at stamp: Stamp) -> DeviceHealth {
        var health = DeviceHealth(
            stamp: stamp,
            state: "healthy",
            reasons: [],
            version: "0.1.0",
            uptime: 300 * number,
            freeBytes: 12_345_678_901 - Int64(number) * 65_537,
            databaseBytes: 234_567_890 + Int64(number) * 4096
        )
        health.roomTenths = 437
        health.pending = ["linux_bluez_beacons": 2997, "linux_gpsd_location": 30]
        health.sources = ["beacons": "loaded", "location": "loaded", "audio": "off"]
        health.board.cpuDecidegrees = 482 + Int64(number % 7)
        health.board.loadHundredths = 12 + Int64(number % 5)
        health.board.availableBytes = 312_345_600
        health.board.wifiRSSI = -61
        return health
    }
}
