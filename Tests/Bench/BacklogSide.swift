// A backlog: a database full of pending sightings, opened and drained as the uploader drains it.
import Glibc
import Host
import HTTP
import Queue
import Records
import Upload

enum BacklogSide {
    /// Shares of the backlog, in percent, at which the drain is looked at.
    static let marks = [10, 50, 100]

    /// Makes the database, by the writer itself at full speed.
    static func fill(_ task: SideTask) throws -> Figures {
        let cycle = try Workload.sightings()
        var figures = try Figures.measure(rows: task.rows) { stopwatch in
            let queue = try task.queue()
            QueueSide.feed(queue, cycle, task, stopwatch)
            queue.close()
        }
        try task.check()
        figures["database_bytes"] = Double(fileSize(task.database))
        return figures
    }

    /// Opens the queue, first from the disk and then from the page cache.
    static func open(_ task: SideTask) throws -> Figures {
        dropFromCache(task.database)
        var figures = Figures()
        for name in ["open_cold_ms", "open_warm_ms"] {
            let before = Usage.now()
            let queue = try task.queue()
            figures[name] = (Usage.now().wall - before.wall) * 1000
            let opened = Usage.now()
            queue.close()
            figures["close_ms"] = (Usage.now().wall - opened.wall) * 1000
        }
        return figures
    }

    /// Freezes batch after batch, makes each body and drops it, marks each uploaded.
    static func drain(_ task: SideTask) throws -> Figures {
        let queue = try task.queue()
        defer { queue.close() }
        let reader = try queue.reader()
        var drain = Drain(rows: task.rows)
        drain.figures = try Figures.measure(rows: task.rows) { _ in
            drain.begin()
            while let (batch, draft) = try nextBatch(
                queue,
                reader,
                .beacons,
                .gzip,
                as: task.form
            ) {
                let body = try draft.body(of: batch, .gzip) ?? body(batch, reader, .gzip)
                drain.bodyBytes += try read(body) { _ in }
                try queue.perform { try $0.uploaded(batch) }
                drain.passed(batch.records)
            }
        }
        guard drain.records == task.rows else {
            throw BenchFailure("\(task.database): \(drain.records) of \(task.rows) were drained")
        }
        return drain.result()
    }

    /// As a sync does it: look, fit, freeze.
    static func nextBatch(
        _ queue: Queue,
        _ reader: Reader,
        _ stream: Stream,
        _ compression: Compression,
        as form: Batch.Form = .rows,
        limit: Int = 8 << 20,
        records: Int = 0
    ) throws -> (Batch, BodyDraft)? {
        guard var range = queue.pending(stream) else { return nil }
        range.form = form
        if records > 0 { range.last = min(range.last, range.first + Int64(records) - 1) }
        let draft = try BodyDraft(
            range,
            limit: limit,
            envelope: envelope(stream),
            compression: compression,
            reader: reader
        )
        let last = draft.last
        return try queue.perform { [range] in try $0.freeze(range, through: last) }
            .map { ($0, draft) }
    }

    /// The body of a batch, as after a restart.
    static func body(
        _ batch: Batch,
        _ reader: Reader,
        _ compression: Compression
    ) throws -> RequestBody {
        try BatchBody(
            batch: batch,
            envelope: envelope(batch.stream),
            compression: compression,
            reader: reader
        ).request()
    }

    private static func envelope(_ stream: Stream) -> Envelope {
        Envelope(streamName: wire(stream), deviceID: "00000000-0000-4000-8000-000000000000")
    }

    /// Its name on the wire by default.
    static func wire(_ stream: Stream) -> String {
        StreamList()[stream]?.wire ?? stream.name
    }

    /// All of a body; its length.
    static func read(
        _ body: RequestBody,
        _ sink: (ArraySlice<UInt8>) throws -> Void
    ) throws -> Int {
        var bytes = 0
        while case let piece = try body.read(atMost: 64 << 10), !piece.isEmpty {
            bytes += piece.count
            try sink(piece)
        }
        return bytes
    }

    /// So that the next read comes from the disk.
    private static func dropFromCache(_ path: String) {
        guard let file = fopen(path, "r+") else { return }
        defer { fclose(file) }
        fsync(fileno(file))
        posix_fadvise(fileno(file), 0, 0, POSIX_FADV_DONTNEED)
    }

    static func fileSize(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}

/// How a drain is going.
private struct Drain {
    let rows: Int
    var records = 0
    var bodyBytes = 0
    var batches = 0
    var figures = Figures()
    private var seen = Figures()
    private var last = (usage: Usage.now(), records: 0, rate: 0.0, cpu: 0.0)

    init(rows: Int) {
        self.rows = rows
    }

    mutating func begin() { last.usage = .now() }

    mutating func passed(_ count: Int) {
        let before = records
        records += count
        batches += 1
        for mark in BacklogSide.marks
        where before < rows * mark / 100 && records >= rows * mark / 100 {
            look(mark)
        }
    }

    /// The speed since the mark before, and the memory at its highest up to here.
    private mutating func look(_ mark: Int) {
        // A batch that passes several marks at once has one speed.
        if records > last.records {
            let now = Usage.now()
            let count = Double(records - last.records)
            let rate = count / max(now.wall - last.usage.wall, 1e-9)
            last = (now, records, rate, (now.cpu - last.usage.cpu) * 1e6 / count)
        }
        let rate = last.rate
        seen["at_\(mark)_records_per_s"] = rate
        seen["at_\(mark)_cpu_us_per_record"] = last.cpu
        seen["at_\(mark)_resident_bytes"] = Resident.current
        seen["at_\(mark)_resident_peak_bytes"] = Resident.peak
        let peak = (Resident.peak / 1e6 * 10).rounded() / 10
        Output.progress("drain: \(mark) %, \(Int(rate)) records/s, \(peak) MB at most")
    }

    func result() -> Figures {
        var result = figures
        for (name, value) in seen.values { result[name] = value }
        result["batches"] = Double(batches)
        result["body_bytes_per_row"] = Double(bodyBytes) / Double(rows)
        return result
    }
}
