// `waypost-bench worker`: one side of one case, in a process of its own; started by the bench.
import ArgumentParser

/// What a worker measures.
enum Side: String, ExpressibleByArgument, CaseIterable {
    case queue
    case path
    case typed
    case json
    case fill
    case open
    case drain
    case journal

    func run(_ task: SideTask) throws -> Figures {
        switch self {
        case .queue: try QueueSide.accept(task)
        case .path: try QueueSide.path(task)
        case .typed: try BaselineSide.typed(task)
        case .json: try BaselineSide.json(task)
        case .fill: try BacklogSide.fill(task)
        case .open: try BacklogSide.open(task)
        case .drain: try BacklogSide.drain(task)
        case .journal: try JournalSide.run(task)
        }
    }
}

struct WorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "One side of one case; prints a figure a line.",
        shouldDisplay: false
    )

    @Argument(help: "Which side.") var side: Side
    @Option(help: "The database file.") var database: String
    @Option(help: "How many sightings.") var rows: Int
    @Option(help: "Sightings a commit; 0: a commit a second.") var rowsPerCommit = 0
    @Flag(help: "In real time.") var live = false

    mutating func run() throws {
        let task = SideTask(
            database: database,
            rows: rows,
            rowsPerCommit: rowsPerCommit,
            isLive: live
        )
        Output.write(try side.run(task).text)
    }
}
