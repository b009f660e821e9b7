// `waypost-bench queue`: records into the queue and out of it again.
import ArgumentParser
import Glibc

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract:
            "Measure the queue: storing, the whole path from radio to disk, a backlog, the journal.",
        discussion: """
            Each side runs in a process of its own on the same disk, in turn, several rounds; the figures \
            are medians. Progress goes to standard error.
            """
    )

    @Option(help: "Sightings at 100 a commit; five times as many at full speed.")
    var rows = 200_000
    @Option(help: "Rounds; the result is their median.")
    var rounds = 3
    @Option(help: "Pending sightings in the backlog, 0 for none. (default: 25 times the rows)")
    var backlog: Int?
    @Option(help: "Seconds of sightings in real time, 0 for none.")
    var live = 10
    @Option(help: "Where the databases are made: on the disk that is to be measured.")
    var directory = "/var/tmp"
    @Flag(help: "One JSON object instead of the table.")
    var json = false

    mutating func validate() throws {
        guard (100...1 << 40).contains(rows), rounds >= 1, backlog ?? 0 >= 0, live >= 0 else {
            throw ValidationError(
                "--rows from 100, --rounds from 1, --backlog and --live from 0"
            )
        }
    }

    mutating func run() throws {
        let workers = try Workers()
        let scratch = try ScratchFolder(in: directory)
        var report = QueueReport(machine: Machine(folder: directory), rows: rows, rounds: rounds)
        let paced = rows / 100 * 100
        report.paced = try compare("100 a commit", workers, scratch) {
            SideTask(database: $0, rows: paced, rowsPerCommit: 100)
        }
        report.fullSpeed = try compare("full speed", workers, scratch) {
            SideTask(database: $0, rows: rows * 5, rowsPerCommit: 0)
        }
        let liveRows = Int(Duration.seconds(live) / Workload.interval)
        if liveRows > 0 {
            report.live = try compare("real time", sides: [.typed, .path], workers, scratch) {
                SideTask(database: $0, rows: liveRows, rowsPerCommit: 0, isLive: true)
            }
        }
        report.journal = try rounds(.journal, rows * 5, workers, scratch)
        let backlog = backlog ?? rows * 25
        if backlog > 0 { report.backlog = try measureBacklog(backlog, workers, scratch) }
        Output.write(json ? report.json : report.table)
    }

    /// The sides in turn, so that a disk that slows down slows all of them.
    private func compare(
        _ title: String,
        sides: [Side] = [.typed, .queue, .path, .json],
        _ workers: Workers,
        _ scratch: ScratchFolder,
        _ task: (_ database: String) -> SideTask
    ) throws -> [Side: Figures] {
        var runs: [Side: [Figures]] = [:]
        let disk = DiskCounter(folder: directory)
        for round in 1...rounds {
            for side in sides {
                Output.progress("\(title), round \(round) of \(rounds): \(side.title)")
                let task = task(scratch.database())
                let before = disk?.written()
                var figures = try workers.run(side, task)
                if let before, let after = disk?.written() {
                    figures["disk_bytes_per_row"] = (after - before) / Double(task.rows)
                }
                runs[side, default: []].append(figures)
                scratch.clear()
            }
        }
        return runs.mapValues { Figures(medianOf: $0) }
    }

    private func rounds(
        _ side: Side,
        _ rows: Int,
        _ workers: Workers,
        _ scratch: ScratchFolder
    ) throws -> Figures {
        var runs: [Figures] = []
        for round in 1...rounds {
            Output.progress("round \(round) of \(rounds): \(side.title)")
            let task = SideTask(database: scratch.database(), rows: rows, rowsPerCommit: 0)
            runs.append(try workers.run(side, task))
            scratch.clear()
        }
        return Figures(medianOf: runs)
    }

    /// Made once and drained once: what is looked at is whether it stays as it begins.
    private func measureBacklog(
        _ rows: Int,
        _ workers: Workers,
        _ scratch: ScratchFolder
    ) throws -> QueueReport.Backlog {
        let task = SideTask(database: scratch.database(), rows: rows, rowsPerCommit: 0)
        Output.progress("backlog: making \(rows) pending sightings")
        let fill = try workers.run(.fill, task)
        var opens: [Figures] = []
        for round in 1...rounds {
            Output.progress("backlog: opening, round \(round) of \(rounds)")
            opens.append(try workers.run(.open, task))
        }
        Output.progress("backlog: draining")
        let drain = try workers.run(.drain, task)
        scratch.clear()
        return QueueReport.Backlog(
            records: rows,
            fill: fill,
            open: Figures(medianOf: opens),
            drain: drain
        )
    }
}

extension Side {
    /// Its name in the table.
    var title: String {
        switch self {
        case .queue: "Waypost, sightings into the queue"
        case .path: "Waypost, the whole path"
        case .capture: "the capture"
        case .typed: "C, the same rows"
        case .json: "C, JSON rows"
        case .fill: "Waypost, a backlog"
        case .open: "Waypost, opening"
        case .drain: "Waypost, draining"
        case .journal: "Waypost, the journal under a reader"
        case .sound: "Waypost, a backlog of sound"
        case .site: "a site's records"
        case .upload: "Waypost, uploading"
        case .bodies: "Waypost, bodies into files"
        case .curl: "curl, the finished bodies"
        case .sink: "the server"
        case .wire: "a site on the wire"
        }
    }
}
