// Waypost's side of the upload: a backlog of sightings or of sound, sent by the real uploader.
import Configuration
import Glibc
import Host
import HTTP
import Queue
import Records
import StatusBoard
import Synchronization
import Upload

enum UploadSide {
    /// Makes a database with `rows` chunks of sound pending: 30 s each, at 24 kb/s.
    static func fillAudio(_ task: SideTask) throws -> Figures {
        try Figures.measure(rows: task.rows) { _ in
            let queue = try task.queue()
            let run = beginRun(queue)
            var random = SeededRandom(seed: 1)
            // Each chunk shares its first segment with the one before.
            for index in 0...(task.rows * (run.chunkSegments - run.overlapSegments)) {
                // Bounds a transaction to what a microphone delivers.
                if index % 100 == 99 { try queue.perform { _ in } }
                let start = Workload.start.advanced(by: .seconds(2 * index))
                queue.accept(segment(of: run, at: start, &random))
            }
            // Not ended: what is left over would be one short chunk more.
            let made = try queue.flushed().pending(.audio)?.last ?? 0
            queue.close()
            guard made == task.rows else {
                throw BenchFailure("\(task.database): \(made) chunks instead of \(task.rows)")
            }
        }
    }

    /// Begins audio in chunks of thirty seconds; each shares two seconds with the one before.
    static func beginRun(_ queue: Queue) -> AudioRun {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .opus,
            rate: 16_000,
            device: "bench",
            preskip: 104
        )
        queue.begin(run)
        return run
    }

    /// Two seconds of Opus as far as size and entropy go: 100 packets of 60 bytes, some more and some less, as Opus' are.
    static func segment(of run: AudioRun, at start: Stamp, _ random: inout SeededRandom) -> Segment
    {
        var data: [UInt8] = []
        for _ in 0..<100 {
            let count = UInt8(truncatingIfNeeded: 50 + random.next() % 21)
            data += [count, 0]
            for _ in 0..<count { data.append(UInt8(truncatingIfNeeded: random.next())) }
        }
        return Segment(run: run.id, frames: 32_000, start: start, meanSquare: 0.01, data: data)
    }

    /// Sends everything that is pending.
    static func upload(_ task: SideTask) throws -> Figures {
        let queue = try task.queue()
        defer { queue.close() }
        let board = Publisher<UploadReport>()
        let destination = task.destination
        let uploader = Uploader(
            settings: UploadSettings {
                $0.maxBatchBytes = task.maxBatchBytes
                $0.clockPatience = .zero
            },
            queue: queue,
            board: board
        ) { try destination.open(queue) }
        let stop = try StopSignal()
        let thread = try OwnThread("uploader") { uploader.run(until: stop) }
        let answers = Mailbox<Bool>(limit: 1)
        var figures = Figures.measure(rows: task.rows) { _ in
            uploader.sync { _ = answers.post($0.isDone) }
            var done: [Bool] = []
            answers.takeAll(into: &done, timeout: nil)
        }
        uploader.stop()
        thread.join()
        let report = board.state.value ?? UploadReport()
        let stream = report.streams[task.stream] ?? StreamUpload()
        guard stream.uploaded == task.rows else {
            let why = stream.lastError.map { ": \($0.failure.message)" } ?? ""
            throw BenchFailure(
                "\(task.database): \(stream.uploaded) of \(task.rows) were sent\(why)"
            )
        }
        figures["body_bytes"] = Double(report.bytesSent)
        return figures
    }

    /// Writes the bodies that `upload` would send into files: the path of the database, a number, `.body`.
    ///
    /// `rowsPerCommit`: the most records of one, if not 0.
    static func bodies(_ task: SideTask) throws -> Figures {
        let queue = try task.queue()
        defer { queue.close() }
        let reader = try queue.reader()
        var (count, bytes, plain) = (0, 0, 0)
        var figures = try Figures.measure(rows: task.rows) { _ in
            while let (batch, draft) = try BacklogSide.nextBatch(
                queue,
                reader,
                task.stream,
                task.compression,
                as: task.form,
                limit: task.maxBatchBytes,
                records: task.rowsPerCommit
            ) {
                count += 1
                guard let body = try draft.body(of: batch, task.compression) else { break }
                bytes += try write(body, to: "\(task.database)-\(count).body")
                plain += draft.plainLength
                try queue.perform { try $0.uploaded(batch) }
            }
        }
        figures["bodies"] = Double(count)
        figures["body_bytes"] = Double(bytes)
        figures["plain_bytes"] = Double(plain)
        return figures
    }

    private static func write(_ body: RequestBody, to path: String) throws -> Int {
        guard let file = fopen(path, "wb") else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        return try BacklogSide.read(body) { piece in
            let count = piece.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
            guard count == piece.count else {
                throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
            }
        }
    }
}

extension SideTask {
    /// As the gateway has them by default.
    var destination: DestinationSettings {
        var transport = TransportSettings(endpoint: endpoint, userAgent: "waypost-bench")
        transport.certificateFile = certificates
        var settings = DestinationSettings(
            transport: transport,
            deviceID: "00000000-0000-4000-8000-000000000000",
            streamNames: StreamList().streams.reduce(into: [:]) { $0[$1] = BacklogSide.wire($1) },
            compression: compression,
            token: { "bench" }
        )
        settings.allowsColumns = form == .columns
        return settings
    }
}
