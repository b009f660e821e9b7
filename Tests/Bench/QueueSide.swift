// Waypost's side: sightings into the queue, from values or from a controller's bytes.
import Beacons
import Configuration
import Glibc
import Host
import HTTP
import Queue
import Records
import SQLite
import StatusBoard
import Synchronization
import Upload

/// The work of one side.
struct SideTask: Sendable {
    var database: String
    var rows: Int
    /// 0: a commit a second, as the gateway does.
    var rowsPerCommit: Int
    /// In real time, a sighting an interval, as a site gives them.
    var isLive = false
    /// For uploads: where to, how, and what.
    var endpoint = ""
    var certificates: String?
    var compression = Compression.gzip
    var stream = Stream.beacons
    var form = Batch.Form.rows
    var maxBatchBytes = 8 << 20
    /// Megabits a second that the server takes; 0: as fast as it goes.
    var link = 0

    /// Rows before measuring begins: in real time what starting costs would count for much.
    var warmUp: Int { isLive ? rows / 10 : 0 }

    func queue() throws -> Queue {
        try Queue(
            settings: QueueSettings(path: database, bootID: "bench", appVersion: "bench")
        )
    }

    /// Fails unless the database has all the rows.
    func check() throws {
        let connection = try Connection(path: database, access: .readOnly)
        let found = try connection.integer("SELECT count(*) FROM sightings") ?? 0
        guard found == rows else {
            throw BenchFailure("\(database): \(found) rows were stored instead of \(rows)")
        }
    }
}

/// Gives sightings to a queue without losing one, and asks for a commit when it is time.
final class Feeder: Sendable {
    private let queue: Queue
    private let task: SideTask
    private let stopwatch: Stopwatch
    private let fed = Atomic(0)

    init(_ queue: Queue, _ task: SideTask, _ stopwatch: Stopwatch) {
        self.queue = queue
        self.task = task
        self.stopwatch = stopwatch
    }

    /// Waits where the gateway would count a loss: the bench wants every row.
    func give(_ sighting: Sighting) {
        let count = fed.wrappingAdd(1, ordering: .relaxed).newValue
        // There is room for thousands when there is any.
        if count % 1000 == 0 { while !queue.hasRoom { usleep(200) } }
        queue.accept(sighting)
        if count == task.warmUp { stopwatch.restart(rows: count) }
        guard task.rowsPerCommit > 0, count % task.rowsPerCommit == 0 else { return }
        // Returns when all before it is on the disk; a failure shows in the number of rows.
        try? queue.perform { _ in }
    }
}

/// Time that passes by the sightings, while each reading costs what the kernel's clock costs.
final class PacedClock: HostClock {
    private let passed = Atomic<Int64>(0)

    func now() -> BootInstant {
        _ = SystemClock().now()
        return Workload.start.boot + elapsed
    }

    func wall() -> WallTime {
        _ = SystemClock().wall()
        return Workload.start.wall + elapsed
    }

    private var elapsed: Duration { .nanoseconds(passed.load(ordering: .relaxed)) }

    /// On to the next sighting.
    func advance() { passed.wrappingAdd(Workload.interval.nanoseconds, ordering: .relaxed) }
}

/// Gives an adapter's sightings to a feeder, and lets time pass by them.
private final class PacedSink: RecordSink {
    private let feeder: Feeder
    private let clock: PacedClock

    init(feeder: Feeder, clock: PacedClock) {
        self.feeder = feeder
        self.clock = clock
    }

    func accept(_ sighting: Sighting) -> Bool {
        feeder.give(sighting)
        clock.advance()
        return true
    }

    var hasRoom: Bool { true }
    func recentReadings() -> [Sighting] { [] }
    func record(_ loss: Loss) {}
    func warn(_ message: String) {}
    // The rest belongs to other sources.
    func accept(_ fix: Fix) -> Bool { false }
    func accept(_ segment: Segment) -> Bool { false }
    func accept(_ event: Event) {}
    func record(place fix: Fix) {}
    func record(time stamp: Stamp, isSettled: Bool) {}
    func newRunID() -> Int64 { 0 }
    func begin(_ run: AudioRun) {}
    func end(run: Int64) {}
    var soundRefusal: Failure? { nil }
    func endOfAudio() -> Stamp? { nil }
}

enum QueueSide {
    /// `Queue.accept` from this thread to committed rows.
    static func accept(_ task: SideTask) throws -> Figures {
        let cycle = try Workload.sightings()
        let figures = try Figures.measure(rows: task.rows) { stopwatch in
            let queue = try task.queue()
            feed(queue, cycle, task, stopwatch)
            queue.close()
        }
        try task.check()
        return figures
    }

    static func feed(
        _ queue: Queue,
        _ cycle: [Sighting],
        _ task: SideTask,
        _ stopwatch: Stopwatch
    ) {
        let feeder = Feeder(queue, task, stopwatch)
        var stamp = Workload.start
        for index in 0..<task.rows {
            var sighting = cycle[index % cycle.count]
            sighting.stamp = stamp
            stamp = stamp.advanced(by: Workload.interval)
            feeder.give(sighting)
        }
    }

    /// Writes the capture of the whole path, and no more: what is not the path's.
    static func capture(_ task: SideTask) throws -> Figures {
        try CaptureFile.write(to: task.database + ".btsnoop", rows: task.rows)
        return Figures()
    }

    /// The whole path: a controller's bytes, parsed, decoded, filtered, and into the queue.
    static func path(_ task: SideTask) throws -> Figures {
        let capture = task.database + ".btsnoop"
        try CaptureFile.write(to: capture, rows: task.rows)
        let paced = PacedClock()
        let clock: any HostClock = task.isLive ? SystemClock() : paced
        var settings = BeaconSettings { $0.source = .capture(path: capture) }
        settings.replaySpeed = task.isLive ? 1 : 0
        settings.allow = Workload.allow
        let stop = try StopSignal()
        let figures = try Figures.measure(rows: task.rows) { [settings] stopwatch in
            let queue = try task.queue()
            let feeder = Feeder(queue, task, stopwatch)
            let adapter = try BeaconAdapter(
                settings: settings,
                sink: PacedSink(feeder: feeder, clock: paced),
                board: Publisher<SourceReport>(),
                clock: clock
            )
            adapter.run(until: stop)
            queue.close()
        }
        try task.check()
        return figures
    }
}
