// Reads the bookkeeping of a damaged database, as far as possible.
import Host
import Records
import SQLite

/// The bookkeeping of a quarantined database; every read may fail.
struct Inheritance: Sendable {
    /// One stream of this database, or of a database that it was draining.
    struct Line: Sendable {
        /// The file of the database that it was draining; nil for its own stream.
        var file: String?
        var stream: Stream
        var next: Int64
        /// Uploaded, evicted or dropped.
        var settled: [ClosedRange<Int64>]
        /// Frozen without a verdict, or in quarantine.
        var batches: [Batch]
        /// Sound that nobody had marked; all of it if that cannot be read.
        var held: [ClosedRange<Int64>] = []

        /// Cuts the line to the next number given by the commit mark.
        ///
        /// Records that the file lacks are lost; those beyond the mark went into the next database.
        mutating func end(at next: Int64) {
            self.next = next
            settled = settled.filter { $0.lowerBound < next }
                .map { $0.lowerBound...min($0.upperBound, next - 1) }
            batches.removeAll { $0.last >= next }
        }
    }

    var isReadable = false
    /// False if some assigned numbers are unknown, so that the number of lost records is too.
    var isComplete = true
    var boots: [Int64: String] = [:]
    var clock: [ClockMap.Entry] = []
    var lines: [Line] = []
    /// Files of databases whose salvage it has reported; each is reported only once.
    var reported: [String] = []
    /// Files of databases that it had fully drained: none of their records are pending.
    var finished: [String] = []
    var losses: [InheritedLoss] = []
    var traffic: [DayTraffic] = []
    /// The survey in progress in it, or one that had ended without a record.
    var survey: OpenSurvey?
    /// The effort accounts in it.
    var effort: InheritedEffort?

    /// Reads the database; throws disk errors while `patience` waits.
    init(_ path: String, _ settings: QueueSettings, _ patience: Patience) throws {
        let mark = try CommitMark(of: path, settings.disk)
        let opened = try patience.read {
            try Reader(settings, damaged: path, patience, mark: mark)
        }
        guard let file = opened else { return }
        // Without ids nobody knows which records the server has: better lost than uploaded twice.
        guard try patience.read({ try file.ids(.beacons, 1...1) }) != nil else {
            isComplete = false
            return
        }
        isReadable = true
        isComplete = !file.isTailCut
        boots = try patience.read(file.boots) ?? [:]
        let entries = try patience.read { try clockEntries(file.connection) }
        clock = entries ?? []
        let rows = max(1, settings.disk.size(path) / 8)
        let files = try patience.read(file.olderFiles) ?? [:]
        reported = try patience.read(file.reportedFiles) ?? []
        finished = try patience.read(file.finishedFiles) ?? []
        traffic = try patience.read { try file.traffic() } ?? []
        survey = try patience.read(file.survey) ?? nil
        effort = try file.inheritedEffort(patience)
        let partitions = try patience.read(file.partitions) ?? guessedPartitions(settings)
        losses = try patience.read { try file.inheritedLosses(partitions.map(\.stream)) } ?? []
        // Losses of a commit that failed but reached the disk were recorded again since; records
        // that it removed are really gone.
        if let mark {
            losses = losses.map {
                $0.loss.kind.isOfRemoval
                    ? $0
                    : $0.limited(
                        to: mark.entered[CommitMark.name($0.loss.stream, $0.loss.kind)] ?? 0
                    )
            }
        }
        for partition in partitions {
            var line = Line(
                file: files[partition.database],
                stream: partition.stream,
                next: 1,
                settled: [],
                batches: []
            )
            guard partition.isLive || line.file != nil else { continue }
            try read(&line, partition, file, patience, atMost: rows)
            // Without its clock map a batch would not be byte-identical: its records go into
            // another.
            if entries == nil { line.batches = [] }
            if partition == Partition(.audio) { line.held = try held(of: line, file, patience) }
            lines.append(line)
        }
    }

    private func held(
        of line: Line,
        _ file: Reader,
        _ patience: Patience
    ) throws -> [ClosedRange<Int64>] {
        let last = max(1, line.next - 1)
        let held = try patience.read(file.heldRanges) ?? [1...last]
        // Whether the chunk that was being recorded would have been held, nobody knows.
        return (held + (file.hasTail ? [last...last] : [])).filter { $0.lowerBound <= last }
            .map { $0.lowerBound...min($0.upperBound, last) }
    }

    private mutating func guessedPartitions(_ settings: QueueSettings) -> [Partition] {
        isComplete = false
        return StreamList(with: settings.moreStreams).streams.map { Partition($0) }
    }

    private mutating func read(
        _ line: inout Line,
        _ partition: Partition,
        _ file: Reader,
        _ patience: Patience,
        atMost rows: Int64
    ) throws {
        let evaluated = try patience.read { try file.settledRanges(partition) }
        line.settled = evaluated ?? []
        line.batches = try patience.read { try file.openBatches(partition) } ?? []
        if evaluated == nil { isComplete = false }
        if let reported = file.reportedNext(partition) { return line.end(at: reported) }
        let newest =
            partition.isLive ? try patience.read { try file.newest(partition.stream) } ?? nil : nil
        let stored = try patience.read { try file.storedNext(partition) } ?? nil
        // A range beyond the last record is damage; it would hide future records.
        if let stored {
            let end = max(stored, (newest ?? 0) + 1)
            line.settled.removeAll { $0.upperBound >= end }
            line.batches.removeAll { $0.last >= end }
        }
        let known = (line.settled + line.batches.map { $0.first...$0.last }).map(\.upperBound).max()
        line.next = max(stored ?? 1, (known ?? 0) + 1, (newest ?? 0) + 1)
        // A number from a damaged page may be anything: limit it to what fits in the file.
        let frozen = FrozenRanges(
            through: 0,
            line.settled + line.batches.map { $0.first...$0.last }
        )
        if stored == nil { isComplete = false }
        if frozen.pending(upTo: line.next - 1) > rows {
            isComplete = false
            line.next = max((known ?? 0) + 1, min((newest ?? 0) + 1, frozen.through + rows))
        }
    }
}

extension OlderDatabase {
    /// Loads a database by number; throws if it is unknown, or `DatabaseDamagedError`.
    init(_ id: Int64, _ settings: QueueSettings) throws {
        let (name, state) = try LiveDatabase(settings).read { live in
            let row = try live.prepare("SELECT name, state FROM databases WHERE id=?", id)
            guard try row.step() else { throw QueueClosedError() }
            return (row.text(0), row.required(1))
        }
        self.init(id: id, name: name, state: state, settings)
        mark = try CommitMark(of: path, settings.disk)
    }
}
