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
    @Option(help: "Rounds of which the median is taken.")
    var rounds = 3
    @Option(help: "Pending sightings in the backlog, 0 for none. (default: 25 times the rows)")
    var backlog: Int?
    @Option(help: "Where the databases are made: on the disk that is to be measured.")
    var directory = "/var/tmp"
    @Flag(help: "One JSON object instead of the table.")
    var json = false

    mutating func validate() throws {
        guard rows >= 100, rounds >= 1, backlog ?? 0 >= 0 else {
            throw ValidationError("--rows from 100, --rounds from 1, --backlog from 0")
        }
    }

    mutating func run() throws {
        let workers = try Workers()
        let scratch = try ScratchFolder(in: directory)
        var report = QueueReport(machine: Machine(folder: directory), rows: rows, rounds: rounds)
        // A commit is a hundred rows in the one, a second in the other.
        report.paced = try compare(rows / 100 * 100, rowsPerCommit: 100, workers, scratch)
        report.fullSpeed = try compare(rows * 5, rowsPerCommit: 0, workers, scratch)
        report.journal = try rounds(.journal, rows * 5, workers, scratch)
        let backlog = backlog ?? rows * 25
        if backlog > 0 { report.backlog = try measureBacklog(backlog, workers, scratch) }
        Output.write(json ? report.json : report.table)
    }

    /// All four sides in turn, so that a disk that slows down slows all of them.
    private func compare(
        _ rows: Int,
        rowsPerCommit: Int,
        _ workers: Workers,
        _ scratch: ScratchFolder
    ) throws -> [Side: Figures] {
        let sides: [Side] = [.typed, .queue, .path, .json]
        var runs: [Side: [Figures]] = [:]
        let rhythm = rowsPerCommit > 0 ? "\(rowsPerCommit) a commit" : "full speed"
        for round in 1...rounds {
            for side in sides {
                Output.progress("\(rhythm), round \(round) of \(rounds): \(side.title)")
                runs[side, default: []].append(
                    try workers.run(
                        side,
                        SideTask(
                            database: scratch.database(),
                            rows: rows,
                            rowsPerCommit: rowsPerCommit
                        )
                    )
                )
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
    /// What it does, for a person.
    var title: String {
        switch self {
        case .queue: "Waypost, sightings into the queue"
        case .path: "Waypost, the whole path"
        case .typed: "C, the same rows"
        case .json: "C, JSON rows"
        case .fill: "Waypost, a backlog"
        case .open: "Waypost, opening"
        case .drain: "Waypost, draining"
        case .journal: "Waypost, the journal under a reader"
        }
    }
}
