// Which files an archive has, and how much of each is committed.
import SQLite

/// A file of the archive and how much of it is committed.
struct ArchiveFile: Sendable, Equatable {
    var stream: String
    var date: String
    var device: String
    /// Bytes.
    var length: Int64

    var path: String { Self.path(in: Self.folder(stream, date, device)) }

    /// Where a stream's day of a device is, from the archive's directory on.
    static func folder(_ stream: String, _ date: String, _ device: String) -> String {
        "stream=\(stream)/date=\(date)/device=\(device)"
    }

    /// The file of a folder.
    static func path(in folder: String) -> String { "\(folder)/records.ndjson" }

    init(stream: String, date: String, device: String, length: Int64) {
        (self.stream, self.date, self.device, self.length) = (stream, date, device, length)
    }

    /// Nil for a path that is none of an archive.
    init?(path: String, length: Int64) {
        let parts = path.split(separator: "/")
        guard parts.count == 4, parts[0].hasPrefix("stream="), parts[1].hasPrefix("date="),
            parts[2].hasPrefix("device="), parts[3] == "records.ndjson"
        else { return nil }
        stream = String(parts[0].dropFirst(7))
        date = String(parts[1].dropFirst(5))
        device = String(parts[2].dropFirst(7))
        self.length = length
    }
}

/// The archive's own index, read by others than its writer.
enum ArchiveFiles {
    static func index(in directory: String) -> String { "\(directory)/.receiver.sqlite" }

    /// All files, the newest days first; none where no receiver has served the directory.
    static func all(in directory: String) throws -> [ArchiveFile] {
        let path = ArchiveFiles.index(in: directory)
        guard fileSize(path) != nil else { return [] }
        let database = try Connection(path: path, access: .readOnly)
        let row = try database.prepare("SELECT path, length FROM files WHERE length > 0")
        var files: [ArchiveFile] = []
        while try row.step() {
            if let file = ArchiveFile(path: row.text(0), length: row.required(1)) {
                files.append(file)
            }
        }
        return files.sorted { $0.date > $1.date }
    }

    /// Up to so many files by their paths, behind one path; "": from the first on.
    static func page(of count: Int64, after path: String, in directory: String) throws
        -> [ArchiveFile]
    {
        let archive = ArchiveFiles.index(in: directory)
        guard fileSize(archive) != nil else { return [] }
        let database = try Connection(path: archive, access: .readOnly)
        let row = try database.prepare(
            "SELECT path, length FROM files WHERE path>? AND length>0 ORDER BY path LIMIT ?"
        )
        try row.bind(path, at: 1)
        try row.bind(count, at: 2)
        var files: [ArchiveFile] = []
        while try row.step() {
            if let file = ArchiveFile(path: row.text(0), length: row.required(1)) {
                files.append(file)
            }
        }
        return files
    }
}
