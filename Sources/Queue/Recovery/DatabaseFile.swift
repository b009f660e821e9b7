// Opens the database file, and quarantines it if it is damaged.
import Host
import SQLite

/// Opens the queue's database; renames a damaged one and never deletes it.
enum DatabaseFile {
    struct Opened {
        var writer: Writer
        /// False when the check at startup ran out of time.
        var isChecked: Bool
    }

    /// Startup must not wait for a check of gigabytes: the rest runs in the background.
    private static let checkLimit = Duration.milliseconds(120)

    /// Opens the database; quarantines a damaged one and creates a new one.
    ///
    /// Throws `SchemaTooNewError` for a database of a newer Waypost, `ForeignDatabaseError` for one of another
    /// program, and does not touch it.
    ///
    /// `numbers` holds the numbers of user streams, used if the database is new. `isAside` is
    /// called with the new path before a rename.
    static func open(
        _ settings: QueueSettings,
        _ streams: [DeclaredStream],
        numbers: [String: Int] = [:],
        isAside: (String) throws -> Void = { _ in }
    ) throws -> Opened {
        let disk = settings.disk
        try finishMove(settings)
        dropStrayMarks(settings)
        try disk.writeAgain(settings.path + "-wal")
        try DamagedFile.dropHalfPage(settings.path, on: disk)
        // A power cut leaves an empty file if the database was never written out.
        if disk.exists(settings.path), disk.size(settings.path) == 0 {
            try moveAside(settings, isAside)
        }
        do {
            try DamagedFile.checkHeader(settings.path, on: disk)
            try checkPages(settings)
            return try openAsItIs(settings, streams, numbers)
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            try moveAside(settings, isAside)
            let opened = try openAsItIs(settings, streams, numbers)
            if error.message.hasPrefix(SchemaCheck.difference), let path = setAside(settings).last {
                try opened.writer.record(memos: [SetAside.tablesMemo(path): "other"])
                try opened.writer.commit()
            }
            return opened
        } catch let error as SQLiteError where error.isFull {
            // Opening writes a little; the reserve exists for when even that does not fit.
            var reserve = Reserve(database: settings.path, on: disk, bytes: settings.reserveBytes)
            guard reserve.release() else { throw error }
            return try openAsItIs(settings, streams, numbers)
        }
    }

    /// Throws damage if a page in use is missing.
    private static func checkPages(_ settings: QueueSettings) throws {
        let missing = try DamagedFile.missingPages(settings.path, on: settings.disk)
        guard !missing.isEmpty else { return }
        let list = missing.map { "\($0)" }.joined(separator: ",")
        // A page that was added and freed at once is never written.
        let used = "SELECT count(*) FROM dbstat WHERE pageno IN (\(list))"
        do {
            guard try settings.connect(nil, .readOnly).integer(used) != 0 else { return }
        } catch let error as SQLiteError where error.code == 13 {
            // SQLITE_FULL on a read: a page refers to a page number above the maximum.
        }
        throw SQLiteError(code: 11, message: "pages \(list.prefix(60)) are missing", statement: "")
    }

    /// Throws if another process certainly holds the database: its files must not be touched.
    static func refuseHeld(_ settings: QueueSettings) throws {
        guard settings.disk.vfs == nil, DatabaseHolder.writer(of: settings.path) != nil else {
            return
        }
        throw SQLiteError(code: 5, message: "database is locked", statement: "")
    }

    private static func openAsItIs(
        _ settings: QueueSettings,
        _ streams: [DeclaredStream],
        _ numbers: [String: Int]
    ) throws -> Opened {
        let isNew = !settings.disk.exists(settings.path)
        do {
            return try openChecked(settings, streams, numbers)
        } catch {
            if isNew { dropEmpty(settings) }
            throw error
        }
    }

    /// Deletes an empty database file.
    ///
    /// A full disk can create the file of a new database but store none of its bytes. The next
    /// retry would take it for the result of a power cut: one more quarantined file per second.
    private static func dropEmpty(_ settings: QueueSettings) {
        let (disk, path) = (settings.disk, settings.path)
        guard disk.size(path) == 0, !disk.exists(path + "-wal") else { return }
        disk.remove(path)
    }

    private static func openChecked(
        _ settings: QueueSettings,
        _ streams: [DeclaredStream],
        _ numbers: [String: Int]
    ) throws -> Opened {
        let writer = try Writer(settings, user: streams, numbers: numbers)
        let check =
            settings.isTurnedByHand
            ? writer.connection.quickCheck()
            : writer.connection.quickCheck(limit: checkLimit, journal: settings.path + "-wal")
        if case .damaged(let message) = check {
            writer.connection.keepJournal()
            throw SQLiteError(code: 11, message: message, statement: "PRAGMA quick_check")
        }
        return Opened(writer: writer, isChecked: check == .sound)
    }

    /// Renames the database and then its WAL; calls `isAside` with the new path first.
    static func moveAside(_ settings: QueueSettings, _ isAside: (String) throws -> Void) throws {
        let path = nameAside(settings)
        try isAside(path)
        _ = try settings.disk.rename(settings.path, to: path)
        settings.disk.remove(settings.path + "-shm")
        try finishMove(settings)
    }

    /// Deletes commit marks that do not have a database.
    ///
    /// A mark is written before its database is renamed, so these come from failed attempts. One
    /// that was not written whole ends with `.new`.
    private static func dropStrayMarks(_ settings: QueueSettings) {
        let (names, suffix) = (settings.disk.names(in: settings.folder), CommitMark.suffix)
        for mark in names where mark.hasPrefix(name(settings.path)) {
            let isStray =
                mark.hasSuffix(suffix) && !names.contains(String(mark.dropLast(suffix.count)))
            let isPart = mark.contains(text: "\(suffix).") && mark.hasSuffix(".new")
            guard isStray || isPart else { continue }
            settings.disk.remove("\(settings.folder)/\(mark)")
        }
    }

    /// Renames the WAL after its database, also if the power failed between the two.
    ///
    /// A new database would delete a WAL under its name. The reverse order could leave the live
    /// database without the commits that only its WAL has. Throws if the folder cannot be listed.
    private static func finishMove(_ settings: QueueSettings) throws {
        let (disk, journal) = (settings.disk, settings.path + "-wal")
        guard !disk.exists(settings.path), disk.exists(journal) else { return }
        guard disk.names(in: settings.folder).contains(name(journal)) else {
            throw SQLiteError.refused(settings.folder)
        }
        guard let last = setAside(settings).last, !disk.exists(last + "-wal") else { return }
        _ = try disk.rename(journal, to: last + "-wal")
    }

    /// Returns the path for the next quarantined database.
    ///
    /// Names sort in the order of quarantine, even if the clock steps back.
    static func nameAside(_ settings: QueueSettings) -> String {
        let last = setAside(settings).last.map { place($0) }
        let now = "\(name(settings.path)).corrupt-\(time(settings.clock.wall()))"
        var (stem, number) = ("\(settings.folder)/\(now)", 1)
        if let last, last.stem >= stem { (stem, number) = (last.stem, last.number + 1) }
        // SQLite would apply a WAL left by a deleted database to this one.
        while settings.disk.exists(path(stem, number) + "-wal") { number += 1 }
        return path(stem, number)
    }

    private static func path(_ stem: String, _ number: Int) -> String {
        number > 1 ? "\(stem)-\(number)" : stem
    }

    /// Returns the sort key of a quarantined database; the next in the same second ends in `-2`.
    private static func place(_ path: String) -> (stem: String, number: Int) {
        guard let end = path.split(separator: "-").last, let number = Int(end) else {
            return (path, 1)
        }
        return (String(path.dropLast(end.count + 1)), number)
    }

    /// Formats a time as `20261121T073000Z`, which sorts by time.
    private static func time(_ wall: WallTime) -> String {
        String(wall.rfc3339.filter { $0 != "-" && $0 != ":" }.prefix { $0 != "." }) + "Z"
    }

    /// Whether `text` is a timestamp by `nameAside`; copies that a person made have other names.
    private static func isMoment(_ text: Substring) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isTime = zip(parts[0], "00000000T000000Z").allSatisfy {
            $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1
        }
        guard isTime, parts[0].count == 16, parts.count < 3 else { return false }
        return parts.count == 1 || Int(parts[1]) != nil
    }

    /// Returns a file's name without its folder.
    static func name(_ path: String) -> String {
        path.split(separator: "/").last.map { String($0) } ?? path
    }

    /// Whether a file next to the database was deleted; false if the folder cannot be listed.
    static func isGone(_ other: String, _ settings: QueueSettings) -> Bool {
        let names = settings.disk.names(in: settings.folder)
        return names.contains(name(settings.path)) && !names.contains(other)
    }

    /// Returns the paths of quarantined databases, oldest first.
    static func setAside(_ settings: QueueSettings) -> [String] {
        let prefix = name(settings.path) + ".corrupt-"
        return settings.disk.names(in: settings.folder)
            .filter { $0.hasPrefix(prefix) && isMoment($0.dropFirst(prefix.count)) }
            .map { "\(settings.folder)/\($0)" }.sorted { place($0) < place($1) }
    }
}
