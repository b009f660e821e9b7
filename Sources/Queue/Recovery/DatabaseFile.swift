// The database as a file: opening it, and setting it aside when it is damaged.
import Host
import SQLite

/// Opens the queue's database; a damaged one is renamed, never deleted.
enum DatabaseFile {
    struct Opened {
        var writer: Writer
        /// False when the check at the start ran out of time.
        var isChecked: Bool
    }

    /// Start-up must not wait for a check of gigabytes: what is left is done in the background.
    private static let checkLimit = Duration.milliseconds(120)

    /// Opens the database, or sets a damaged one aside and makes a new one.
    ///
    /// Throws SchemaTooNew for a database of a newer Waypost, which is left alone.
    ///
    /// `numbers`: those that streams of the user had, should this be a new database. `isAside` is called with the
    /// path to which one is renamed next.
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
        // A file without a byte is what a power cut leaves of one that was never written out.
        if disk.exists(settings.path), disk.size(settings.path) == 0 {
            try moveAside(settings, isAside)
        }
        do {
            try DamagedFile.checkHeader(settings.path, on: disk)
            try checkPages(settings)
            return try openAsItIs(settings, streams, numbers)
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            try moveAside(settings, isAside)
            return try openAsItIs(settings, streams, numbers)
        } catch let error as SQLiteError where error.isFull {
            // Opening writes a little; the reserve is there for when even that has no room.
            var reserve = Reserve(database: settings.path, on: disk, bytes: settings.reserveBytes)
            guard reserve.release() else { throw error }
            return try openAsItIs(settings, streams, numbers)
        }
    }

    /// Throws damage where a page is not there that holds something.
    private static func checkPages(_ settings: QueueSettings) throws {
        let missing = try DamagedFile.missingPages(settings.path, on: settings.disk)
        guard !missing.isEmpty else { return }
        let list = missing.map { "\($0)" }.joined(separator: ",")
        // A page that was added and given back at once is never written.
        let used = "SELECT count(*) FROM dbstat WHERE pageno IN (\(list))"
        do {
            guard try settings.connect(nil, .readOnly).integer(used) != 0 else { return }
        } catch let error as SQLiteError where error.code == 13 {
            // SQLITE_FULL of what only reads: a page refers to one whose number is larger than any.
        }
        throw SQLiteError(code: 11, message: "pages \(list.prefix(60)) are missing", statement: "")
    }

    /// Throws where another program certainly has the database: nothing may be done to its files then.
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

    /// A full disk takes the file of a new database, and no byte of it.
    ///
    /// The next try would take it for what a power cut left, and set it aside: one more each second.
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

    /// Renames the database and its journal, which belongs to it; `isAside` is called with its new path before.
    static func moveAside(_ settings: QueueSettings, _ isAside: (String) throws -> Void) throws {
        let path = nameAside(settings)
        try isAside(path)
        _ = try settings.disk.rename(settings.path, to: path)
        settings.disk.remove(settings.path + "-shm")
        try finishMove(settings)
    }

    /// A mark is written before its database is renamed: one without a database is of a try that failed.
    private static func dropStrayMarks(_ settings: QueueSettings) {
        let (names, suffix) = (settings.disk.names(in: settings.folder), CommitMark.suffix)
        for mark in names where mark.hasPrefix(name(settings.path)) && mark.hasSuffix(suffix) {
            guard !names.contains(String(mark.dropLast(suffix.count))) else { continue }
            settings.disk.remove("\(settings.folder)/\(mark)")
        }
    }

    /// The journal follows its database, also where the power went between the two.
    ///
    /// A new database would delete one that it finds under its own name; and the other order would leave the database
    /// alone, which then goes on without what only its journal has. Throws where it cannot be told which one it is.
    private static func finishMove(_ settings: QueueSettings) throws {
        let (disk, journal) = (settings.disk, settings.path + "-wal")
        guard !disk.exists(settings.path), disk.exists(journal) else { return }
        guard disk.names(in: settings.folder).contains(name(journal)) else {
            throw SQLiteError.refused(settings.folder)
        }
        guard let last = setAside(settings).last, !disk.exists(last + "-wal") else { return }
        _ = try disk.rename(journal, to: last + "-wal")
    }

    /// Names are in the order in which databases were set aside, whatever the clock says meanwhile.
    static func nameAside(_ settings: QueueSettings) -> String {
        let last = setAside(settings).last.map { place($0) }
        let now = "\(name(settings.path)).corrupt-\(time(settings.clock.wall()))"
        var (stem, number) = ("\(settings.folder)/\(now)", 1)
        if let last, last.stem >= stem { (stem, number) = (last.stem, last.number + 1) }
        // A journal that is left of a database that was deleted would be taken for its own.
        while settings.disk.exists(path(stem, number) + "-wal") { number += 1 }
        return path(stem, number)
    }

    private static func path(_ stem: String, _ number: Int) -> String {
        number > 1 ? "\(stem)-\(number)" : stem
    }

    /// Where a database stands among those that were set aside; a second one of the same moment ends in `-2`.
    private static func place(_ path: String) -> (stem: String, number: Int) {
        guard let end = path.split(separator: "-").last, let number = Int(end) else {
            return (path, 1)
        }
        return (String(path.dropLast(end.count + 1)), number)
    }

    /// `20261121T073000Z`: a file name that sorts by time.
    private static func time(_ wall: WallTime) -> String {
        String(wall.rfc3339.filter { $0 != "-" && $0 != ":" }.prefix { $0 != "." }) + "Z"
    }

    /// What `nameAside` made of a moment; a copy that a person made of the file has another name.
    private static func isMoment(_ text: Substring) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isTime = zip(parts[0], "00000000T000000Z").allSatisfy {
            $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1
        }
        guard isTime, parts[0].count == 16, parts.count < 3 else { return false }
        return parts.count == 1 || Int(parts[1]) != nil
    }

    /// The name of a file without its folder.
    static func name(_ path: String) -> String {
        path.split(separator: "/").last.map { String($0) } ?? path
    }

    /// Whether somebody took away a file that lay beside the database; false where that cannot be told.
    static func isGone(_ other: String, _ settings: QueueSettings) -> Bool {
        let names = settings.disk.names(in: settings.folder)
        return names.contains(name(settings.path)) && !names.contains(other)
    }

    /// Databases that were set aside, oldest first.
    static func setAside(_ settings: QueueSettings) -> [String] {
        let prefix = name(settings.path) + ".corrupt-"
        return settings.disk.names(in: settings.folder)
            .filter { $0.hasPrefix(prefix) && isMoment($0.dropFirst(prefix.count)) }
            .map { "\(settings.folder)/\($0)" }.sorted { place($0) < place($1) }
    }
}
