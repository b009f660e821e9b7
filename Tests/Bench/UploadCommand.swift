// `waypost-bench upload`: a backlog to a server on this machine, beside curl posting the same bodies.
import ArgumentParser
import Glibc
import HTTP
import Queue
import Records
import Upload

struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Measure the uploader: a backlog of sightings and of sound, over loopback.",
        discussion: """
            The server takes every body and looks at none. curl posts the same bodies, made and compressed \
            beforehand and in files, so it shows what the network alone allows. Each side runs in a process \
            of its own, in turn, several rounds; the figures are medians. Progress goes to standard error.
            """
    )

    @Option(help: "Pending sightings, 0 for none.")
    var records = 200_000
    @Option(help: "Pending chunks of sound of 30 s, 0 for none.")
    var chunks = 200
    @Option(help: "gzip, zstd or none; may be given several times. (default: all)")
    var compression: [String] = []
    @Option(help: "Megabytes of a body before compression, 1 to 1000.")
    var batch = 8
    @Option(help: "Megabits per second of the line to the server, 0 for plain loopback.")
    var link = 0
    @Option(help: "Rounds; the result is their median.")
    var rounds = 3
    @Option(help: "Where the databases and the bodies are made.")
    var directory = "/var/tmp"
    @Flag(help: "One JSON object instead of the table.")
    var json = false

    mutating func validate() throws {
        guard records >= 0, chunks >= 0, records + chunks > 0, rounds >= 1,
            (1...1000).contains(batch), (0...100_000).contains(link)
        else {
            throw ValidationError(
                "--records and --chunks from 0, not both 0; --rounds from 1; --batch 1 to 1000; --link from 0"
            )
        }
        let unknown = compression.filter { Compression(rawValue: $0) == nil }
        guard unknown.isEmpty else {
            throw ValidationError("--compression \(unknown[0]): gzip, zstd or none")
        }
    }

    mutating func run() throws {
        let workers = try Workers()
        let scratch = try ScratchFolder(in: directory)
        let sink = try workers.sink(link: link)
        var result = UploadResult(
            machine: Machine(folder: directory),
            rounds: rounds,
            batch: batch,
            link: link
        )
        let chosen = compression.compactMap { Compression(rawValue: $0) }
        for (stream, rows) in [(Stream.beacons, records), (.audio, chunks)] where rows > 0 {
            let database = "\(scratch.path)/pending.sqlite"
            Output.progress("making \(rows) \(stream.unit)")
            let fill = SideTask(database: database, rows: rows, rowsPerCommit: 0)
            _ = try workers.run(stream == .audio ? .sound : .site, fill)
            for compression in chosen.isEmpty ? [.gzip, .zstd, .none] : chosen {
                var task = fill
                task.endpoint = sink.endpoint
                task.compression = compression
                task.stream = stream
                task.maxBatchBytes = batch << 20
                result.cases.append(try measure(task, workers, scratch))
            }
            scratch.clear()
        }
        Output.write(json ? result.json : result.table)
    }

    private func measure(
        _ task: SideTask,
        _ workers: Workers,
        _ scratch: ScratchFolder
    ) throws -> UploadResult.Case {
        var made = task
        made.database = try Self.copy(task.database, to: "\(scratch.path)/bodies.sqlite")
        let title = "\(task.rows) \(task.stream.unit), \(task.compression.rawValue)"
        Output.progress("\(title): \(Side.bodies.title)")
        let bodies = try workers.run(.bodies, made)
        var runs: [Side: [Figures]] = [:]
        for round in 1...rounds {
            Output.progress("\(title), round \(round) of \(rounds)")
            var post = made
            post.rows = Int(bodies["bodies"] ?? 0)
            runs[.curl, default: []].append(try workers.run(.curl, post))
            var upload = task
            upload.database = try Self.copy(task.database, to: "\(scratch.path)/upload.sqlite")
            let figures = try workers.run(.upload, upload)
            // The uploader sends the newest records first, so its batches are cut elsewhere.
            let (sent, made) = (figures["body_bytes"] ?? 0, bodies["body_bytes"] ?? 0)
            guard abs(sent - made) <= made * 0.05 + 100_000 else {
                throw BenchFailure("\(title): what was sent is not what is in the files")
            }
            runs[.upload, default: []].append(figures)
            scratch.clear("upload")
        }
        scratch.clear("bodies")
        return UploadResult.Case(
            stream: task.stream,
            rows: task.rows,
            compression: task.compression,
            bodies: bodies,
            waypost: Figures(medianOf: runs[.upload] ?? []),
            curl: Figures(medianOf: runs[.curl] ?? [])
        )
    }

    /// A closed database is one file.
    private static func copy(_ path: String, to other: String) throws -> String {
        guard let from = fopen(path, "rb") else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(from) }
        guard let into = fopen(other, "wb") else {
            throw BenchFailure("\(other): \(String(cString: strerror(errno)))")
        }
        defer { fclose(into) }
        var block = [UInt8](repeating: 0, count: 1 << 20)
        while case let count = fread(&block, 1, block.count, from), count > 0 {
            guard fwrite(block, 1, count, into) == count else {
                throw BenchFailure("\(other): \(String(cString: strerror(errno)))")
            }
        }
        return other
    }
}

extension Stream {
    /// The plural name of its records.
    var unit: String { self == .audio ? "chunks of sound" : "sightings" }
}
