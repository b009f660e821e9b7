// `waypost-bench worker`: one side of one case, in a process of its own; started by the bench.
import ArgumentParser
import HTTP
import Queue
import Records
import Upload

/// The cases that a worker measures.
enum Side: String, ExpressibleByArgument, CaseIterable {
    case queue
    case path
    case capture
    case typed
    case json
    case fill
    case open
    case drain
    case journal
    case sound
    case site
    case upload
    case bodies
    case curl
    case sink
    case wire

    func run(_ task: SideTask) throws -> Figures {
        switch self {
        case .queue: return try QueueSide.accept(task)
        case .path: return try QueueSide.path(task)
        case .capture: return try QueueSide.capture(task)
        case .typed: return try BaselineSide.typed(task)
        case .json: return try BaselineSide.json(task)
        case .fill: return try BacklogSide.fill(task)
        case .open: return try BacklogSide.open(task)
        case .drain: return try BacklogSide.drain(task)
        case .journal: return try JournalSide.run(task)
        case .sound: return try UploadSide.fillAudio(task)
        case .site: return try SiteSide.fill(task)
        case .upload: return try UploadSide.upload(task)
        case .bodies: return try UploadSide.bodies(task)
        case .curl: return try CurlSide.post(task)
        case .wire: return try WireSide.run(task)
        case .sink:
            try SinkSide.serve(link: task.link)
            return Figures()
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
    @Option(help: "Where uploads go.") var endpoint = ""
    @Option(help: "The certificates that their server's is signed by.") var certificates: String?
    @Option(help: "gzip, zstd or none.") var compression = Compression.gzip.rawValue
    @Flag(help: "Upload sound, not sightings.") var audio = false
    @Flag(help: "Upload fixes, not sightings.") var fixes = false
    @Flag(help: "Bodies in columns.") var columns = false
    @Option(help: "Megabits a second that the server takes.") var link = 0
    @Option(help: "Bytes of a body before compression.") var maxBatchBytes = 8 << 20

    mutating func run() throws {
        let task = SideTask(
            database: database,
            rows: rows,
            rowsPerCommit: rowsPerCommit,
            isLive: live,
            endpoint: endpoint,
            certificates: certificates,
            compression: Compression(rawValue: compression) ?? .gzip,
            stream: audio ? .audio : fixes ? .location : .beacons,
            form: columns ? .columns : .rows,
            maxBatchBytes: maxBatchBytes,
            link: link
        )
        Output.write(try side.run(task).text)
    }
}
