// Reads the records of one device by what its streams contain.
import Host

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

    /// The dates with audio, effort or detections, in order.
    var dates: [String] {
        let contents: [Content] = [.audio, .effort, .detections]
        return Set(contents.flatMap { files[$0] ?? [] }.map(\.date)).sorted()
    }

    /// Returns the devices of an archive in order; throws a Trouble for one that it does not have.
    static func all(in directory: String, _ scope: ExportScope) throws -> [Self] {
        let files = Dictionary(grouping: try ArchiveFiles.all(in: directory), by: \.device)
        for device in scope.devices.union(scope.positions.keys) where files[device] == nil {
            throw Trouble(
                "this server has no records of the device \(printable(device)); "
                    + "waypost-receiver devices shows those that it knows"
            )
        }
        return try files.keys.sorted().compactMap { device in
            guard scope.devices.isEmpty || scope.devices.contains(device) else { return nil }
            return try Self(directory, device, files[device] ?? [])
        }
    }

    private init(_ directory: String, _ device: String, _ all: [ArchiveFile]) throws {
        (self.directory, self.device) = (directory, device)
        var files: [Content: [ArchiveFile]] = [:]
        for stream in Dictionary(grouping: all, by: \.stream).values {
            // The newest file shows what the stream contains now.
            let sorted = stream.sorted { $0.date < $1.date }
            guard let newest = sorted.last else { continue }
            if let content = try Self.content(of: newest, directory) {
                files[content, default: []] += sorted
            }
        }
        self.files = files.mapValues { $0.sorted { ($0.date, $0.stream) < ($1.date, $1.stream) } }
    }

    private static func content(of file: ArchiveFile, _ directory: String) throws -> Content? {
        guard let lines = try LineFile.open("\(directory)/\(file.path)") else { return nil }
        let end = min(file.length, Int64(beginning))
        var found: Content?
        try lines.forEachLine(from: 0, to: end) { if found == nil { found = $0.flatMap(content) } }
        return found
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
    /// Records that the server marked as dated ahead are left out.
    func forEach(
        _ content: Content,
        on dates: (String) -> Bool,
        _ body: (RecordLine, ArchiveFile) throws -> Void
    ) throws {
        for file in files[content] ?? [] where dates(file.date) {
            guard let lines = try LineFile.open("\(directory)/\(file.path)") else { continue }
            // A person may have cut the file.
            let end = min(file.length, try lines.size())
            try lines.forEachLine(from: 0, to: end) { record in
                guard let record, !record.isAhead else { return }
                try body(record, file)
            }
        }
    }
}
