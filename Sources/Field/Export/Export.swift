// Exports local data: reads the database, with or without a running gateway, and changes nothing.
package import AudioTags
import Glibc
package import Host
import Queue
import Records
package import Setup
import Upload

/// The options of an export.
package struct ExportRequest: Sendable {
    /// The stream's own name or its wire name.
    package var stream: String
    /// nil: audio files as they were recorded if audio goes into a folder, else ndjson.
    package var format: ExportFormat?
    package var since: WallTime?
    /// Excluded.
    package var until: WallTime?
    /// A file, or a folder for audio files; nil: standard output.
    package var output: String?
    /// The path of a quarantined database; nil: the live one.
    package var database: String?
    /// The names of audio files.
    package var names = FileNames.waypost
    /// Returns the seconds east of UTC at a time, for local times; nil: UTC, or the site's offset
    /// in names of Song Meter.
    package var localOffset: (@Sendable (WallTime) -> Int)?
    /// Waypost's version, for the metadata of audio files; empty: not known.
    package var version = ""
    /// The folder in place of `/` where the board's name is; tests use another.
    package var root = ""

    package init(stream: String, format: ExportFormat?) {
        self.stream = stream
        self.format = format
    }

    /// Returns whether a time is in the requested range.
    func isWanted(_ wall: WallTime) -> Bool {
        since.map { wall >= $0 } ?? true && until.map { wall < $0 } ?? true
    }
}

/// The counts of an export.
package struct ExportOutcome: Sendable, Equatable {
    package var records = 0
    /// Unreadable records, and chunks that cannot be converted.
    package var unreadable = 0
    /// Audio files written in their recorded format instead of the requested one.
    package var asRecorded = 0
}

/// Runs one export; not thread-safe.
package final class Export {
    /// The number of records looked up at a time.
    private static let page: Int64 = 1024

    private let request: ExportRequest
    private let format: ExportFormat
    private let times: ExportTimes
    private let configuration: Configuration
    private let reader: Reader
    private let stream: Stream
    private let bounds: ClosedRange<Int64>?
    private let progress: (_ records: Int, _ share: Double) -> Void
    private let complain: (String) -> Void
    private var outcome = ExportOutcome()

    /// Opens the database; throws a Failure if the stream or its format does not exist.
    ///
    /// `progress` is called regularly with the records and the share of the stream done,
    /// `complain` with a message for each chunk of audio that cannot be converted.
    package init(
        _ request: ExportRequest,
        _ configuration: Configuration,
        progress: @escaping (_ records: Int, _ share: Double) -> Void = { _, _ in },
        complain: @escaping (String) -> Void = { _ in }
    ) throws {
        self.request = request
        self.configuration = configuration
        (self.progress, self.complain) = (progress, complain)
        times = ExportTimes(offset: request.localOffset)
        let path = request.database ?? configuration.databasePath
        do {
            reader = try Reader(path: path)
            let wanted = request.stream
            let kinds = StreamList().streams
            let named = kinds.first { configuration.wire(of: $0) == wanted }?.name
            let own = configuration.userStreams.first { $0.wire == wanted }?.name
            let found =
                try reader.stream(named: wanted) ?? reader.stream(named: named ?? own ?? "")
                ?? reader.stream(onWire: wanted)
            guard let found else {
                let known = (kinds.map(\.name) + configuration.userStreams.map(\.name))
                    .joined(separator: ", ")
                throw Failure("no stream \"\(wanted.prefix(64))\": \(known)")
            }
            stream = found
            bounds = try reader.bounds(of: found)
        } catch let failure as Failure {
            throw failure
        } catch {
            if let refusal = DatabaseRights.refusal(path, after: error) { throw refusal }
            let isMissing = access(path, F_OK) != 0 && errno == ENOENT
            let missing = "the file does not exist; the gateway makes it when it first runs"
            throw Failure("\(path): \(isMissing ? missing : "\(error)")")
        }
        format = request.format ?? Self.format(of: stream, to: request.output)
        try Self.check(format, stream)
        if request.localOffset != nil, format == .gpx {
            throw Failure("gpx has no local times; use csv, ndjson or geojson")
        }
    }

    private static func format(of stream: Stream, to output: String?) -> ExportFormat {
        guard stream == .audio, let output else { return .ndjson }
        var status = stat()
        let exists = stat(output, &status) == 0
        let isNamedFile = ["json", "jsonl"].contains { output.hasSuffix($0) }
        let isFolder = exists ? status.st_mode & S_IFMT == S_IFDIR : !isNamedFile
        return isFolder && output != "-" ? .recorded : .ndjson
    }

    private static func check(_ format: ExportFormat, _ stream: Stream) throws {
        let special: Stream
        switch format {
        case .ndjson, .csv: return
        case .gpx, .geojson: special = .location
        case .wav, .ogg, .flac, .recorded: special = .audio
        }
        guard stream != special else { return }
        let others = [Stream.location: ", gpx, geojson", .audio: ", wav, ogg, flac"][stream] ?? ""
        throw Failure(
            "\(format.rawValue) is for \(special); export \(stream) as ndjson, csv\(others)"
        )
    }

    /// Writes all records that exist at the start.
    ///
    /// A file appears only once it is complete.
    package func run() throws -> ExportOutcome {
        switch format {
        case .wav, .ogg, .flac, .recorded: try writeAudios()
        case .ndjson: try write(LinesWriter())
        case .csv: try write(TableWriter(columns: try columns(), times: times))
        case .gpx: try write(TrackWriter(name: configuration.wire(of: stream)))
        case .geojson: try write(PointsWriter())
        }
        if let path = request.output, path != "-" { try ExportFile.sync(path) }
        return outcome
    }

    // MARK: Records

    private func write(_ writer: some ExportWriter) throws {
        var writer = writer
        let file = try ExportFile(request.output, holdsAudio: stream == .audio)
        file.keep(Array(writer.begin().utf8))
        // Written between pages, because a reader such as a pager may block for hours.
        try eachRecord(between: { try file.pour() }) { json in
            file.keep(writer.record(format == .csv ? json : times.json(json)))
            outcome.records += 1
        }
        try file.write(Array(writer.end().utf8))
        try file.close()
    }

    /// Returns the names of all members of any record, also those in objects, in a first pass.
    private func columns() throws -> [String] {
        var names: [String] = []
        var seen: Set<String> = []
        try eachRecord { json in
            for (name, _) in RecordMembers(json).flat where seen.insert(name).inserted {
                names.append(name)
            }
        }
        outcome = ExportOutcome()
        return names
    }

    /// Calls `body` with each record in the requested time.
    ///
    /// Audio is inline as base64, or a file name in a table.
    ///
    /// `between` may block: no read transaction is open then, which would stop WAL checkpoints.
    private func eachRecord(
        between: () throws -> Void = {},
        _ body: ([UInt8]) throws -> Void
    ) throws {
        let source = try RecordSource(
            reader: reader,
            clockMap: .max,
            sound: format == .csv ? .named : .inline
        )
        try eachRun { run, done in
            try source.forEach(stream, run, between: between) { sequence, json in
                if isWanted(json) { try body(json) }
                done(sequence)
                return true
            }
        }
    }

    /// Returns whether a record's time is in the requested range; true if it has none.
    private func isWanted(_ json: [UInt8]) -> Bool {
        guard request.since != nil || request.until != nil else { return true }
        let members = RecordMembers(json)
        let time = ["timestamp", "timestamp_start", "start"].firstResult { members.text($0) }
        guard let wall = time.flatMap({ WallTime(rfc3339: $0) }) else { return true }
        return request.isWanted(wall)
    }

    /// Calls `body` with runs of existing records; `body` calls `done` with each handled one.
    ///
    /// Skips records that the gateway purges during the export, and counts unreadable ones.
    private func eachRun(
        _ body: (_ run: ClosedRange<Int64>, _ done: (Int64) -> Void) throws -> Void
    ) throws {
        guard let bounds else { return }
        var next = bounds.lowerBound
        while next <= bounds.upperBound {
            do {
                guard try eachOfAPage(from: &next, bounds, body) else { return }
            } catch let missing as RecordMissingError {
                let found = try? reader.present(stream, from: missing.sequence, limit: 1)
                let isGone = found.map { $0.first?.lowerBound != missing.sequence } ?? false
                if !isGone { outcome.unreadable += 1 }
                next = max(next, missing.sequence + 1)
            } catch let error where Reader.isUnreadable(error) {
                // Later records may be readable.
                outcome.unreadable += 1
                next += 1
            }
        }
    }

    /// Calls `body` with the runs of the next page of records; false at the end.
    private func eachOfAPage(
        from next: inout Int64,
        _ bounds: ClosedRange<Int64>,
        _ body: (_ run: ClosedRange<Int64>, _ done: (Int64) -> Void) throws -> Void
    ) throws -> Bool {
        let runs = try reader.present(stream, from: next, limit: Self.page)
        guard let first = runs.first, first.lowerBound <= bounds.upperBound else { return false }
        for run in runs where run.lowerBound <= bounds.upperBound {
            let run = run.lowerBound...min(run.upperBound, bounds.upperBound)
            next = run.lowerBound
            try body(run) { next = $0 + 1 }
            next = run.upperBound + 1
            let share = Double(next - bounds.lowerBound) / Double(bounds.count)
            progress(outcome.records, share)
        }
        return true
    }

    // MARK: Audio

    private func writeAudios() throws {
        var files = try AudioFiles(request, format, reader, configuration, complain)
        try eachRun { run, done in
            for sequence in run {
                let count = try files.write(sequence...sequence)
                outcome.records += count.files
                outcome.asRecorded += count.asRecorded
                outcome.unreadable += count.unconverted
                done(sequence)
            }
        }
    }
}
