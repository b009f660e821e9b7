// Keeps the queue within its limits; evicts in this order: uploaded, quarantined, pending.
import Host
import Records
import SQLite

/// Checks the space after commits and deletes records in the fixed order.
struct Quota {
    /// The maximum time of one slice of work, so that records do not wait long.
    private static let slice = Duration.milliseconds(200)
    /// How long the level `full` is shown after an eviction.
    private static let memory = Duration.seconds(600)
    /// The minimum free space for which pending records are evicted when others fill the disk.
    private static let smallestGoal: Int64 = 4 << 20

    var limits: StorageLimits
    private(set) var report: StorageReport
    private(set) var soundIsHeld = false
    /// There is more to delete than the last slice of work did.
    private(set) var isBehind = false
    private let settings: QueueSettings
    private var path: String { settings.path }
    private var disk: any QueueDisk { settings.disk }
    private var reserve: Reserve
    private var checkedAt: BootInstant?
    /// When pending or quarantined records were last evicted.
    private var evictedAt: BootInstant?
    private var journalTriedAt: BootInstant?
    /// The WAL file has its full length.
    private var journalIsLong = false
    /// The process that keeps the WAL from being emptied.
    private var holder: DatabaseHolder?
    /// The size limit last set in SQLite.
    private var limited: Int64 = 0
    /// The last known free space of the file system; a terabyte until it is known.
    private var lastFree: Int64 = 1 << 40

    init(_ settings: QueueSettings) {
        self.settings = settings
        limits = settings.limits
        report = StorageReport(path: settings.path)
        reserve = Reserve(
            database: settings.path,
            on: settings.disk,
            bytes: settings.reserveBytes
        )
    }

    /// Sets the limits of a new connection, which has none; the first turn may write a lot.
    mutating func begin(_ writer: Writer) throws {
        limited = 0
        journalIsLong = false
        try limit(writer)
    }

    /// Checks the space; called after each commit, and with `force` by the health timer.
    ///
    /// Unforced checks run at most a hundred times per second.
    mutating func keep(_ writer: Writer, force: Bool = false) throws {
        let now = writer.clock.now()
        if let checkedAt, now - checkedAt < .milliseconds(10), !force, !isBehind { return }
        checkedAt = now
        try keepJournal(writer, now)
        var room = try measure(writer)
        lengthenJournal(writer, room)
        if limited != limits.file || room.fileBytes > limits.file { try limit(writer) }
        judgeSound(room)
        let deadline = now + Self.slice
        isBehind = false
        while let stage = stageNeeded(room) {
            guard try evict(writer, upTo: stage) else { break }
            room = try measure(writer)
            isBehind = writer.clock.now() >= deadline && stageNeeded(room) != nil
            if isBehind { break }
        }
        if room.fileBytes > limits.file, room.reusableBytes > 0 { try shrink(writer) }
        judgeSound(room)
        reserve.keep(free: room.fileSystemFree)
        update(room, now)
    }

    /// Frees space after SQLite reported a full disk; returns false if nothing could be freed.
    ///
    /// `isRepeated` means that an earlier attempt did not help: if others fill the disk, none will.
    mutating func makeRoom(_ writer: Writer, isRepeated: Bool) throws -> Bool {
        let hadReserve = reserve.release()
        let room = try measure(writer)
        let isOwnLimit = room.fileBytes + (256 << 10) > limits.file
        guard isOwnLimit || !isRepeated else { return hadReserve }
        if !isOwnLimit { soundIsHeld = true }
        let goal = room.reusableBytes + max(128 << 10, limits.file / 100)
        var freed = false
        while true {
            let now = try measure(writer)
            // As in `pendingGoal`: evict pending records only for up to half of the database.
            let pending = isOwnLimit ? Stage.pending : .older
            let stage = now.reusableBytes < now.fileBytes / 2 ? pending : .quarantined
            guard now.reusableBytes < goal, try evict(writer, upTo: stage) else { break }
            freed = true
        }
        try? writer.checkpoint(waiting: true)
        update(try measure(writer), writer.clock.now())
        return freed || hadReserve
    }

    // MARK: Eviction order

    private enum Stage: Int {
        case uploaded
        case quarantined
        case pending
        /// Pending records of quarantined databases, evicted before those: deleting such a file
        /// frees disk space, but not space in this one.
        case older
    }

    /// Returns the last stage that must be evicted from now; nil if there is enough space.
    private func stageNeeded(_ room: StorageRoom) -> Stage? {
        if room.free < pendingGoal(room) { return .older }
        if room.used > limits.file - limits.file / 50 { return .pending }
        if room.free < limits.criticalFree { return .quarantined }
        return room.free < limits.warnFree ? .uploaded : nil
    }

    /// The free space below which pending records are evicted.
    ///
    /// If others fill the disk, deleting everything would not help and would lose all records: at
    /// most half of the database is evicted.
    private func pendingGoal(_ room: StorageRoom) -> Int64 {
        min(limits.criticalFree, max(Self.smallestGoal, room.fileBytes / 2))
    }

    /// Evicts one step and commits it; returns false if nothing evictable is left.
    private mutating func evict(_ writer: Writer, upTo stage: Stage) throws -> Bool {
        // A fully drained older database frees the most space.
        if try writer.evictOlderFile() { return true }
        if try writer.evictUploaded() {
            try writer.commit()
            return true
        }
        guard stage.rawValue >= Stage.quarantined.rawValue else { return false }
        var hasEvicted = try writer.evictQuarantined()
        if !hasEvicted, stage == .older { hasEvicted = try writer.evictOlder() }
        if !hasEvicted, stage.rawValue >= Stage.pending.rawValue {
            hasEvicted = try writer.evictPending()
        }
        guard hasEvicted else { return false }
        try writer.commit()
        evictedAt = writer.clock.now()
        return true
    }

    /// Stops audio below the critical limit and resumes it 5 % above.
    private mutating func judgeSound(_ room: StorageRoom) {
        if room.free < limits.criticalFree {
            soundIsHeld = true
        } else if room.free >= limits.criticalFree + limits.criticalFree / 20 {
            soundIsHeld = false
        }
    }

    // MARK: The file

    private mutating func measure(_ writer: Writer) throws -> StorageRoom {
        var room = StorageRoom()
        room.fileBytes = disk.size(path)
        room.journalBytes = disk.size(path + "-wal")
        room.reusableBytes = try writer.reusableBytes()
        // A folder that is away briefly is not a full disk and does not cause evictions.
        lastFree = settings.free() ?? lastFree
        room.fileSystemFree = lastFree
        return room
    }

    private mutating func limit(_ writer: Writer) throws {
        try writer.limitPages(limits.file / writer.pageBytes)
        try writer.limitJournal(limits.journal)
        writer.evictionBytes = min(256 << 10, limits.journal / 2)
        limited = limits.file
    }

    /// Returns pages to the file system after the limit was lowered, some at a time.
    private mutating func shrink(_ writer: Writer) throws {
        try writer.begin()
        try writer.connection.execute("PRAGMA incremental_vacuum(\((1 << 20) / writer.pageBytes))")
        try writer.commit()
        try limit(writer)
        if try writer.reusableBytes() > 0 { isBehind = true }
    }

    /// Extends the WAL once per connection to the length at which it is checkpointed.
    ///
    /// Overwriting it then changes neither its size nor its blocks, so a commit does not wait for
    /// the file system's metadata (fdatasync(2)).
    private mutating func lengthenJournal(_ writer: Writer, _ room: StorageRoom) {
        let bytes = limits.journal / 2
        guard settings.lengthensJournal, !journalIsLong, room.free > limits.warnFree + bytes else {
            return
        }
        journalIsLong = true
        _ = writer.connection.lengthenJournal(to: bytes)
    }

    /// Checkpoints the WAL before it grows much beyond its share.
    ///
    /// SQLite does so itself unless a reader is always active; our own readers are short.
    private mutating func keepJournal(_ writer: Writer, _ now: BootInstant) throws {
        guard disk.size(path + "-wal") > 2 * limits.journal else {
            holder = nil
            return
        }
        if let tried = journalTriedAt, now - tried < .seconds(2) { return }
        try writer.checkpoint(waiting: true)
        // Remember only a failed attempt: waiting again for the reader would delay records.
        let isCut = disk.size(path + "-wal") <= 2 * limits.journal
        journalTriedAt = isCut ? nil : now
        holder = isCut || disk.vfs != nil ? nil : DatabaseHolder.reader(of: path)
    }

    private mutating func update(_ room: StorageRoom, _ now: BootInstant) {
        report.room = room
        let recently = evictedAt.map { now - $0 < Self.memory } ?? false
        if room.free < limits.criticalFree {
            report.level = .critical
            report.detail = "\(megabytes(room.free)) free: audio is not recorded; free some space"
        } else if recently {
            report.level = .full
            report.detail = "full: the oldest records are deleted until uploads catch up"
        } else if room.free < limits.warnFree {
            report.level = .low
            report.detail = "\(megabytes(room.free)) free: uploaded records are deleted early"
        } else {
            report.level = .ok
            report.detail = ""
        }
        if let holder, report.level == .ok {
            report.detail =
                "the journal has grown to \(megabytes(room.journalBytes)): \(holder.name) "
                + "(process \(holder.pid)) keeps reading the database; end it"
        }
    }

    private func megabytes(_ bytes: Int64) -> String { "\(bytes / 1_000_000) MB" }
}

extension Writer {
    /// Sets the database's maximum page count; SQLite reports FULL beyond it.
    package func limitPages(_ pages: Int64) throws {
        _ = try connection.integer("PRAGMA max_page_count=\(pages)")
    }

    /// Sets the size to truncate the WAL to; it is checkpointed at half, so a transaction fits.
    func limitJournal(_ bytes: Int64) throws {
        _ = try connection.integer("PRAGMA wal_autocheckpoint=\(bytes / 2 / (pageBytes + 24))")
        _ = try connection.integer("PRAGMA journal_size_limit=\(bytes)")
    }

    /// Checkpoints and truncates the WAL; `waiting` gives readers 250 ms to finish.
    func checkpoint(waiting: Bool) throws {
        try commit()
        connection.waitForOthers(milliseconds: waiting ? 250 : 0)
        defer { connection.waitForOthers(milliseconds: 5000) }
        _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
    }
}
