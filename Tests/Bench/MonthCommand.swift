// `waypost-bench month`: what a site's month writes to the card, and how large its database becomes.
import ArgumentParser
import Configuration
import Glibc
import Host
import JSON
import Queue
import Records
import SQLite
import Synchronization

struct MonthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "month",
        abstract: "Store, upload and delete a site's month: bytes written, size of the database.",
        discussion: """
            Ten sightings a second, a fix each ten seconds, Opus of 24 kb/s all day; a commit a second, an upload each \
            five minutes, three days kept, as by default. The queue is the real one, and its clock goes on as fast as the \
            disk takes the commits (some fifteen minutes). Bytes are those that the disk was given, of all that uses it.
            """
    )

    @Option(help: "Days.") var days = 30
    @Option(help: "Days that records stay after their upload.") var retention = 3
    @Option(help: "Where the database is made: on the disk that is to be measured.")
    var directory = "/var/tmp"
    @Flag(help: "One JSON object instead of the table.") var json = false

    mutating func validate() throws {
        guard (1...3650).contains(days), (1...3650).contains(retention) else {
            throw ValidationError("--days and --retention from 1 to 3650")
        }
    }

    mutating func run() throws {
        let scratch = try ScratchFolder(in: directory)
        var month = try Month(database: scratch.database(), retention: .days(retention))
        let disk = DiskCounter(folder: directory)
        let before = (usage: Usage.now(), disk: disk?.written())
        var sizes: [Double] = []
        for day in 1...days {
            try month.day()
            sizes.append(Double(month.size))
            Output.progress("day \(day) of \(days): database \(month.size / 1_000_000) MB")
        }
        let usage = Usage.now()
        let written =
            disk.flatMap { disk in before.disk.map { disk.written() - $0 } }
            ?? usage.blockBytes - before.usage.blockBytes
        try month.end()
        let rows = summary(sizes, written, usage.cpu - before.usage.cpu, month)
        Output.write(json ? Self.report(rows, sizes) : Self.table(rows))
    }

    private func summary(
        _ sizes: [Double],
        _ written: Double,
        _ cpu: Double,
        _ month: Month
    ) -> [Row] {
        let days = Double(days)
        // The space of a day's records while none are deleted.
        let stored = sizes[0]
        var rows = [
            Row("written to the disk", "MB a day", written / days / 1e6),
            Row("stored by the first day", "MB", stored / 1e6),
            Row("written for each byte that is stored", "x", written / days / max(stored, 1)),
            Row("records", "a day", Double(month.records) / days),
            Row("CPU of storing, uploading's marks and deleting", "s a day", cpu / days),
        ]
        // It has its size when as much is deleted as comes.
        let settled = retention + 1
        if sizes.count > settled {
            rows.append(
                Row(
                    "database at the end",
                    "MB",
                    (sizes.last ?? 0) / 1e6,
                    beside: ("day \(settled + 1)", sizes[settled] / 1e6),
                    goal: Row.Goal(limit: 1.05, isOfRatio: true)
                )
            )
        }
        return rows
    }

    private static func table(_ rows: [Row]) -> String {
        rows.map {
            QueueReport.line("\($0.what), \($0.unit)", QueueReport.text($0.ours), "", "")
        }.joined() + "\n" + Row.table(rows)
    }

    private static func report(_ rows: [Row], _ sizes: [Double]) -> String {
        Row.report("month", rows) {
            $0.key("database_bytes")
            $0.array { json in for size in sizes { json.raw("\(Int(size))") } }
        }
    }
}

/// The queue of a site whose time is turned on by whoever feeds it.
private struct Month {
    private let path: String
    private let queue: Queue
    private let clock = TurnedClock()
    private let retention: Duration
    private let cycle: [Sighting]
    private let run: AudioRun
    private var random = SeededRandom(seed: 1)
    private var second = 0
    private(set) var records = 0

    init(database: String, retention: Duration) throws {
        (path, self.retention) = (database, retention)
        cycle = try Workload.sightings()
        queue = try Queue(
            settings: QueueSettings(
                path: database,
                bootID: "bench",
                clock: clock,
                appVersion: "bench"
            )
        )
        run = UploadSide.beginRun(queue)
    }

    /// Bytes of the file.
    var size: Int { BacklogSide.fileSize(path) }

    mutating func day() throws {
        for _ in 0..<86_400 {
            for _ in 0..<10 { sighting() }
            if second % 10 == 0 { fix() }
            if second % 2 == 0 { segment() }
            second += 1
            clock.turn(to: second)
            // As the writer's own clock does each second of a site.
            try queue.perform { _ in }
            if second % 30 == 0 { queue.purge(retention: retention) }
            if second % 300 == 0 { try upload() }
        }
    }

    func end() throws {
        queue.close()
        let connection = try Connection(path: path, access: .readOnly)
        let left = try connection.integer("SELECT count(*) FROM sightings") ?? 0
        // The retention and an hour more: an upload every five minutes, then the pace of the purge.
        let kept = (retention + .seconds(3600)).components.seconds * 10
        guard left <= kept else {
            throw BenchFailure("\(path): \(left) sightings are left, \(kept) are kept")
        }
    }

    private mutating func sighting() {
        var sighting = cycle[records % cycle.count]
        sighting.stamp = clock.stamp()
        queue.accept(sighting)
        records += 1
    }

    private mutating func fix() {
        var fix = Fix(
            stamp: clock.stamp(),
            mode: .threeDimensional,
            latitude: 47 + Double(random.next() % 1_000_000) / 1e7,
            longitude: 8 + Double(random.next() % 1_000_000) / 1e7
        )
        fix.altitude = 512.5
        fix.satellites = 9
        queue.accept(fix)
        records += 1
    }

    private mutating func segment() {
        queue.accept(UploadSide.segment(of: run, at: clock.stamp(), &random))
    }

    /// Everything that waits, in batches as large as an upload's.
    private func upload() throws {
        for stream in [Stream.beacons, .location, .audio] {
            while let range = queue.pending(stream) {
                let last = min(range.last, range.first + 19_999)
                guard let batch = try queue.perform({ try $0.freeze(range, through: last) }) else {
                    return
                }
                try queue.perform { try $0.uploaded(batch) }
            }
        }
    }
}

/// A clock that stands until it is turned on; of all threads.
private final class TurnedClock: HostClock {
    private let seconds = Atomic(0)

    func turn(to second: Int) { seconds.store(second, ordering: .relaxed) }

    func now() -> BootInstant { Workload.start.boot + passed }

    func wall() -> WallTime { Workload.start.wall + passed }

    private var passed: Duration { .seconds(seconds.load(ordering: .relaxed)) }
}
