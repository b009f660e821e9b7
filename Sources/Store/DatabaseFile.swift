// The database as a file: opening it, and setting it aside when it is damaged.
internal import Glibc
internal import Host

/// Opens the queue's database; a damaged one is renamed, never deleted.
enum DatabaseFile {
    struct Opened {
        var writer: Writer
        var nextRun: Int64
        /// False when the check at the start ran out of time.
        var isChecked: Bool
    }

    /// Start-up must not wait for a check of gigabytes: what is left is done in the background.
    private static let checkLimit = Duration.milliseconds(120)

    /// Opens the database, or sets a damaged one aside and makes a new one.
    ///
    /// Throws SchemaTooNew for a database of a newer Waypost, which is left alone.
    static func open(_ settings: QueueSettings) throws -> Opened {
        let isThere = access(settings.path, F_OK) == 0
        // A file without a byte is what a power cut leaves of one that was never written out.
        if isThere, FileSpace.size(settings.path) == 0 { try moveAside(settings) }
        do {
            return try openAsItIs(settings)
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            try moveAside(settings)
            return try openAsItIs(settings)
        } catch let error as SQLiteError where error.isFull {
            // Opening writes a little; the reserve is there for when even that has no room.
            var reserve = Reserve(database: settings.path)
            guard reserve.release() else { throw error }
            return try openAsItIs(settings)
        }
    }

    private static func openAsItIs(_ settings: QueueSettings) throws -> Opened {
        let writer = try Writer(
            path: settings.path,
            bootID: settings.bootID,
            clock: settings.clock,
            appVersion: settings.appVersion
        )
        let check = writer.connection.quickCheck(
            limit: checkLimit,
            journal: settings.path + "-wal"
        )
        if case .damaged(let words) = check {
            writer.connection.keepJournal()
            throw SQLiteError(code: 11, message: words, statement: "PRAGMA quick_check")
        }
        let runs = try writer.connection.integer("SELECT max(id) FROM runs") ?? 0
        return Opened(writer: writer, nextRun: runs + 1, isChecked: check == .sound)
    }

    /// Renames the database and its journal, which belongs to it.
    static func moveAside(_ settings: QueueSettings) throws {
        let stem = "\(settings.path).corrupt-\(time(settings.clock.wall()))"
        var name = stem
        var number = 1
        while access(name, F_OK) == 0 {
            number += 1
            name = "\(stem)-\(number)"
        }
        // The journal first: a new database would delete one that it finds under its own name.
        for suffix in ["-wal", ""] {
            guard rename(settings.path + suffix, name + suffix) == 0 || errno == ENOENT else {
                throw SystemError.last("rename", on: settings.path + suffix)
            }
        }
        unlink(settings.path + "-shm")
    }

    /// `20261121T073000Z`: a file name that sorts by time.
    private static func time(_ wall: WallTime) -> String {
        String(wall.rfc3339.filter { $0 != "-" && $0 != ":" }.prefix { $0 != "." }) + "Z"
    }

    /// Databases that were set aside, oldest first.
    static func setAside(beside path: String) -> [String] {
        guard let slash = path.lastIndex(of: "/"), let folder = opendir(String(path[..<slash]))
        else { return [] }
        defer { closedir(folder) }
        let prefix = path[path.index(after: slash)...] + ".corrupt-"
        var found: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix(prefix), !name.hasSuffix("-wal"), !name.hasSuffix("-shm") else {
                continue
            }
            found.append("\(path[...slash])\(name)")
        }
        return found.sorted()
    }
}
