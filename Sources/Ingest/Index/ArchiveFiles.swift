// Which files an archive has, and how much of each is committed.
import SQLite

/// The archive's own index, read by others than its writer.
enum ArchiveFiles {
    /// All files, the newest days first; none where no receiver has served the directory.
    static func all(in directory: String) throws -> [ArchiveFile] {
        let path = Archive.database(in: directory)
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
        let archive = Archive.database(in: directory)
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
