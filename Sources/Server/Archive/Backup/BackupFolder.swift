// Recognises the folder of a backup.
import Foundation
import Glibc
import Host
import ServerBase

/// The folder that backups of one data folder are written to.
///
/// It has the same layout as the data folder. A marker, with the time of the last complete backup,
/// distinguishes it from other folders.
package struct BackupFolder {
    static let marker = ".receiver-backup"
    /// The names that a folder may hold before the first backup: an interrupted start, or a new file system.
    private static let harmless: Set<String> = [".receiver.lock", "lost+found"]

    package let path: String
    private let lock: DirectoryLock

    /// Creates or opens the folder, and locks it; throws a `Failure` if it is something else.
    package init(_ path: String, of data: String) throws {
        try Self.expectApart(path, data)
        self.path = path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        guard names.contains(Self.marker) || Self.harmless.isSuperset(of: names) else {
            throw Failure(
                "\(path) is not empty and not a backup of waypost-receiver; name a new or an empty folder"
            )
        }
        do {
            let inUse = "another backup is being written there"
            lock = try DirectoryLock(path, option: "", inUse: inUse)
        } catch let error as StartError {
            throw Failure("\(error); give it to the user that owns \(data)")
        }
        // An early time is safe: devices are asked to send more than is missing.
        if !names.contains(Self.marker) { try mark(SystemClock().wall().rfc3339) }
    }

    /// Stores the time of the state that a complete backup holds.
    package func mark(_ time: String) throws {
        try SmallFile.replace("\(path)/\(Self.marker)", Array("\(time)\n".utf8), mode: 0o640)
    }

    /// Returns the time of the last complete backup; throws a `Failure` without one.
    ///
    /// The folder may come from elsewhere: no link is followed, and nothing of it is shown unparsed.
    package static func time(of path: String) throws -> String {
        let marked = try? SmallFile.read("\(path)/\(marker)", limit: 64, followsLink: false)
        if access("\(path)/\(marker)", R_OK) != 0, errno == EACCES {
            let user = userName(geteuid())
            throw Failure(
                "\(path) cannot be read by \(user), the owner of the data; run: sudo chown -R \(user): \(path)"
            )
        }
        guard let text = marked.map({ trimmed(String(decoding: $0.bytes, as: UTF8.self)) }),
            let time = WallTime(rfc3339: text)
        else {
            throw Failure("\(path) is not a backup of waypost-receiver; name the folder of one")
        }
        guard fileKind(ArchiveFiles.index(in: path)) == S_IFREG else {
            throw Failure("\(path) has no complete backup: the first one was interrupted")
        }
        return time.rfc3339
    }

    /// Throws a `Failure` if one of two folders is the other one or in it.
    package static func expectApart(_ backup: String, _ data: String) throws {
        let (one, other) = (real(backup), real(data))
        guard !"\(one)/".hasPrefix("\(other)/"), !"\(other)/".hasPrefix("\(one)/") else {
            throw Failure(
                "\(backup) and \(data) lie in each other; a backup needs a folder of its own"
            )
        }
    }

    /// Returns a path without links, also of a folder that does not exist yet.
    private static func real(_ path: String) -> String {
        guard let whole = realpath(path, nil) else {
            let parent = folder(ofPath: path)
            guard parent != path else { return path }
            return real(parent) + "/" + (path.split(separator: "/").last ?? "")
        }
        defer { free(whole) }
        return String(cString: whole)
    }
}
