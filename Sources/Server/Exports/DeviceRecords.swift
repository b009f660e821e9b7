// Reads the records of one device by what its streams contain.
import Host
import ServerArchive
import ServerBase

/// The record files of one device; a configuration may give a stream any name.
struct DeviceRecords {
    enum Content {
        case audio
        case positions
        case effort
        case health
        case detections
    }

    /// Bytes of a file in which its first record is looked for.
    private static let beginning = 1 << 20

    let directory: String
    let device: String
    /// In order of their dates.
    private let files: [Content: [ArchiveFile]]
    private let skipped: SkippedRecords

    /// The dates with audio, effort or detections, in order.
    var dates: [String] {
        let contents: [Content] = [.audio, .effort, .detections]
        return Set(contents.flatMap { files[$0] ?? [] }.map(\.date)).sorted()
    }

    /// Returns the devices of an archive in order; throws a `Failure` for one that it does not have.
    ///
    /// `skipped` counts what is left out whenever records are read.
    static func all(
        in directory: String,
        _ scope: ExportScope,
        _ skipped: SkippedRecords
    ) throws -> [Self] {
        let files = Dictionary(grouping: try ArchiveFiles.all(in: directory), by: \.device)
        for device in scope.devices.union(scope.positions.keys) where files[device] == nil {
            throw Failure(
                "this server has no records of the device \(printable(device)); "
                    + "waypost-receiver devices shows those that it knows"
            )
        }
        return files.keys.sorted().compactMap { device in
            guard scope.devices.isEmpty || scope.devices.contains(device) else { return nil }
            return Self(directory, device, files[device] ?? [], scope, skipped)
        }
    }

    private init(
        _ directory: String,
        _ device: String,
        _ all: [ArchiveFile],
        _ scope: ExportScope,
        _ skipped: SkippedRecords
    ) {
        (self.directory, self.device, self.skipped) = (directory, device, skipped)
        var files: [Content: [ArchiveFile]] = [:]
        for stream in Dictionary(grouping: all, by: \.stream).values {
            let sorted = stream.sorted { $0.date < $1.date }
            if let content = Self.content(of: sorted, directory, scope, skipped) {
                files[content, default: []] += sorted
            }
        }
        self.files = files.mapValues { $0.sorted { ($0.date, $0.stream) < ($1.date, $1.stream) } }
    }

    /// Returns what a stream contains now: the newest file with a readable record shows it.
    private static func content(
        of stream: [ArchiveFile],
        _ directory: String,
        _ scope: ExportScope,
        _ skipped: SkippedRecords
    ) -> Content? {
        for file in stream.reversed() {
            var (found, isRead, count) = (Content?.none, false, SkippedRecords.Count())
            do {
                guard let lines = try LineFile.open("\(directory)/\(file.path)") else { continue }
                let end = min(file.length, Int64(beginning))
                try lines.forEachLine(from: 0, to: end) { record in
                    if record == nil { count.unreadable += 1 } else { isRead = true }
                    if found == nil { found = record.flatMap(content) }
                }
            } catch {
                count.unreadable += 1
            }
            guard !isRead else { return found }
            // `forEach` does not come here if no file of the stream shows what it contains.
            if scope.mayInclude(date: file.date) { skipped.record(count, of: file) }
        }
        return nil
    }

    private static func content(of record: RecordLine) -> Content? {
        func has(_ names: String...) -> Bool { names.allSatisfy { record[$0] != nil } }
        if has("scientific_name") || has("species") { return .detections }
        // A person's own stream may have clips, places or a version, too.
        if has("audio_file", "sample_rate") { return .audio }
        if has("source", "state", "from", "to") { return .effort }
        if has("uptime_s", "version", "state", "reasons") { return .health }
        return has("latitude", "longitude", "fix") ? .positions : nil
    }

    /// Calls `body` with each record of a content that is stored under one of these dates, and the
    /// file that it is in.
    ///
    /// Leaves out and counts those that cannot be read, or that the server marked as dated ahead.
    func forEach(
        _ content: Content,
        on dates: (String) -> Bool,
        _ body: (RecordLine, ArchiveFile) throws -> Void
    ) throws {
        for file in files[content] ?? [] where dates(file.date) {
            try forEach(in: file) { try body($0, file) }
        }
    }

    private func forEach(in file: ArchiveFile, _ body: (RecordLine) throws -> Void) throws {
        var count = SkippedRecords.Count()
        defer { skipped.record(count, of: file) }
        var failure: (any Error)?
        do {
            guard let lines = try LineFile.open("\(directory)/\(file.path)") else { return }
            // A person may have cut the file.
            let end = min(file.length, try lines.size())
            try lines.forEachLine(from: 0, to: end) { record in
                guard let record else { return count.unreadable += 1 }
                guard !record.isAhead else { return count.ahead += 1 }
                do { try body(record) } catch {
                    failure = error
                    throw error
                }
            }
        } catch {
            // Not an error of `body`: the rest of the file cannot be read.
            guard let failure else { return count.unreadable += 1 }
            throw failure
        }
    }
}
