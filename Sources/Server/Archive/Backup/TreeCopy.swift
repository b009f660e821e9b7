// Copies the files of a data folder into another folder.
import CLinux
import Foundation
import Glibc
import Host
import SQLite
import ServerBase

/// Copies files under their paths relative to two folders, and counts what it copies.
///
/// No symbolic link is followed on either side.
final class TreeCopy {
    /// Ends the names of files that are not complete yet.
    static let unfinished = ".new"
    /// How long a copy waits for other users of a database, in milliseconds.
    private static let busy: Int32 = 60_000

    let source: String
    let target: String
    private let from: Descriptor
    private let to: Descriptor
    private let folders: DurableFolders
    /// Folders on each file system that has got files.
    private var written: Set<String> = []
    private(set) var files = 0
    private(set) var bytes: Int64 = 0

    init(from source: String, to target: String) throws {
        (self.source, self.target) = (source, target)
        from = try Descriptor(opening: source, O_RDONLY | O_DIRECTORY)
        to = try Descriptor(opening: target, O_RDONLY | O_DIRECTORY)
        folders = DurableFolders(target)
    }

    /// Returns the size of a file in the source; nil if there is none.
    func size(_ path: String) throws -> Int64? {
        guard let file = try PlainFile.open(path, in: from) else { return nil }
        return file.size
    }

    /// Returns the size of a file in the target; nil if there is none.
    func copiedSize(_ path: String) throws -> Int64? {
        guard let file = try PlainFile.open(path, in: to) else { return nil }
        return file.size
    }

    /// Returns whether both sides have the same bytes before a place, as far as their last ones
    /// show.
    func isSame(_ path: String, before place: Int64) throws -> Bool {
        guard place > 0 else { return true }
        guard let file = try PlainFile.open(path, in: from), file.size >= place,
            let copy = try PlainFile.open(path, in: to), copy.size >= place
        else { return false }
        return try copy.hasSameTail(as: file, before: place)
    }

    /// Copies a range of a file, which becomes the end of the copy; `name`: the copy's path, the
    /// same without one.
    ///
    /// Returns false if the source does not have the file any more.
    @discardableResult
    func copy(_ path: String, _ range: Range<Int64>, as name: String? = nil) throws -> Bool {
        guard let file = try PlainFile.open(path, in: from) else { return false }
        let name = name ?? path
        try folders.make(folder(ofPath: name))
        let flags = O_RDWR | O_CREAT
        guard let copy = try PlainFile.open(name, in: to, flags, mode: file.mode) else {
            throw Failure("\(target)/\(name) is not a regular file; move it away")
        }
        try copy.copy(range, of: file)
        written.insert(folder(ofPath: "\(target)/\(name)"))
        files += 1
        bytes += range.upperBound - range.lowerBound
        return true
    }

    /// Copies a whole file unless the target has it with the same size and time of change.
    ///
    /// The copy gets its name when it is complete. `replaces`: false leaves any file that is there.
    func copyWhole(_ path: String, replaces: Bool = true) throws {
        guard let file = try PlainFile.open(path, in: from) else { return }
        if let copy = try PlainFile.open(path, in: to) {
            let isSameTime =
                copy.modified.tv_sec == file.modified.tv_sec
                && copy.modified.tv_nsec == file.modified.tv_nsec
            guard replaces, copy.size != file.size || !isSameTime else { return }
        }
        let name = path + Self.unfinished
        if try copy(path, 0..<file.size, as: name) { try rename(name, to: path) }
    }

    /// Renames a file in the target.
    func rename(_ name: String, to path: String) throws {
        try folders.make(folder(ofPath: path))
        guard renameat(to.number, name, to.number, path) == 0 else {
            throw SystemError.last("rename", on: "\(target)/\(name)")
        }
    }

    /// Copies a database as of its last commit, under an unfinished name.
    func copyDatabase(_ name: String) throws {
        let (old, new) = ("\(source)/\(name)", "\(target)/\(name)\(Self.unfinished)")
        removeDatabase(new)
        // Made before SQLite does: digests of tokens are readable by their owner only.
        var status = stat()
        guard stat(old, &status) == 0 else { throw SystemError.last("stat", on: old) }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
        _ = try Descriptor(opening: new, flags, mode: status.st_mode & 0o777)
        let database = try Connection(path: old, access: .readOnly)
        database.waitForOthers(milliseconds: Self.busy)
        try database.copy(to: new)
    }

    /// Puts all that was written to the target on the disk, or disks: a part of the target may have
    /// its own.
    func sync() throws {
        written = Set(try onePathPerFileSystem([target] + written))
        for folder in written { try syncFileSystem(of: folder) }
    }

    // MARK: Lists

    /// The kinds of file in a data folder.
    enum Kind {
        /// Lines of records, as long as the archive's index says.
        case records
        /// Audio, or a file that a person put beside it.
        case other
        case link
    }

    /// Calls `body` with each file below the folders of streams and of audio.
    static func forEachFile(in root: String, _ body: (String, Kind) throws -> Void) throws {
        for top in try names(in: root) where top.hasPrefix("stream=") || top == "audio" {
            guard let paths = FileManager.default.enumerator(atPath: "\(root)/\(top)") else {
                continue
            }
            if fileKind("\(root)/\(top)") == S_IFLNK { try body(top, .link) }
            for case let path as String in paths
            where !path.hasSuffix(unfinished) && !PrunedFolder.contains(path) {
                let path = "\(top)/\(path)"
                switch fileKind("\(root)/\(path)") {
                case S_IFLNK: try body(path, .link)
                case S_IFREG:
                    try body(path, ArchiveFile(path: path, length: 0) == nil ? .other : .records)
                default: break
                }
            }
        }
    }

    /// Returns the names of the small files beside the data that are state of the server, other
    /// than databases, locks and what the server makes itself.
    static func stateFiles(in root: String) throws -> [String] {
        let made = [
            ".receiver.lock", ".receiver.reserve", BackupFolder.marker, RestoreMarker.name,
        ]
        return try names(in: root).filter { name in
            name.hasPrefix(".receiver") && !name.contains(".sqlite") && !name.hasSuffix(".lock")
                && !name.hasSuffix(unfinished) && !made.contains(name)
                && !name.hasPrefix(Spool.prefix) && fileKind("\(root)/\(name)") == S_IFREG
        }
    }

    /// Returns the names of the databases, the archive's last; without the index, which is made
    /// from the files.
    static func databases(in root: String) throws -> [String] {
        let archive = ArchiveFiles.index(in: "")
        let others = try names(in: root).filter { name in
            name.hasPrefix(".receiver") && name.hasSuffix(".sqlite") && "/\(name)" != archive
                && !name.hasPrefix(".receiver-index") && fileKind("\(root)/\(name)") == S_IFREG
        }
        return others + [String(archive.dropFirst())]
    }

    private static func names(in root: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: root).sorted()
        } catch {
            throw StartError("\(root) cannot be read", error)
        }
    }
}
