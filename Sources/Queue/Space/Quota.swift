// Keeps the queue within its limits; evicts in this order: uploaded, held, quarantined, pending.
import Host
import Records
import SQLite

/// Checks the space after commits and deletes records in the fixed order.
struct Quota {
    /// The maximum time of one slice of work, so that records do not wait long.
    private static let slice = Duration.milliseconds(200)
    /// The longest time for which the level `full` is shown after an eviction.
    private static let memory = Duration.seconds(600)
    /// The free space that storing and uploading need, if others fill the disk.
    private static let workingSpace: Int64 = 4 << 20

    var limits: StorageLimits
    private(set) var report: StorageReport
    private(set) var soundIsHeld = false
    /// Others fill the disk, so that records of sources and programs are refused.
    var isFull: Bool { report.isFull }
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
        let deadline = now + Self.slice
        isBehind = false
        while let stage = try stageNeeded(room, writer) {
            guard try evict(writer, upTo: stage) else { break }
            room = try measure(writer)
            isBehind = try writer.clock.now() >= deadline && stageNeeded(room, writer) != nil
            if isBehind { break }
        }
        if room.fileBytes > limits.file, room.reusableBytes > 0 { try shrink(writer) }
        reserve.keep(free: room.fileSystemFree)
        try update(room, writer)
    }

    /// Frees space after SQLite reported a full disk; returns false if nothing could be freed.
    ///
    /// `isRepeated` means that an earlier attempt did not help: if others fill the disk, none will.
    mutating func makeRoom(_ writer: Writer, isRepeated: Bool) throws -> Bool {
        let hadReserve = reserve.release()
        let room = try measure(writer)
        let isOwnLimit = room.fileBytes + (256 << 10) > limits.file
        guard isOwnLimit || !isRepeated else { return hadReserve }
        let goal = room.reusableBytes + max(128 << 10, limits.file / 100)
        var freed = false
        while true {
            let now = try measure(writer)
            let stage =
                isOwnLimit && now.reusableBytes < now.fileBytes / 2
                ? .pending : try stageForOthers(now, writer) ?? .quarantined
            guard now.reusableBytes < goal, try evict(writer, upTo: stage) else { break }
            freed = true
        }
        try? writer.checkpoint(waiting: true)
        try update(try measure(writer), writer, isRefused: !isOwnLimit)
        return freed || hadReserve
    }

    // MARK: Eviction order

    private enum Stage {
        case uploaded
        case quarantined
        case pending
        /// Records of quarantined databases: deleting such a file frees disk space.
        case older
    }

    /// Returns the last stage that must be evicted from now; nil if there is enough space, or if
    /// evicting would not make enough.
    private func stageNeeded(_ room: StorageRoom, _ writer: Writer) throws -> Stage? {
        if let stage = try stageForOthers(room, writer) { return stage }
        if room.used > limits.file - limits.file / 50 { return .pending }
        let atMost = room.free + room.used - writer.memory.pendingBytes
        if room.free < limits.criticalFree, atMost >= limits.criticalFree { return .quarantined }
        return room.free < limits.warnFree ? .uploaded : nil
    }

    /// Returns which pending records to evict if others fill the disk; nil if that is not needed, or
    /// would not make enough space.
    ///
    /// At most half of the pending records and of the database are evicted. A small database cannot
    /// make enough space: its records wait for their upload, and new ones are refused.
    private func stageForOthers(_ room: StorageRoom, _ writer: Writer) throws -> Stage? {
        let goal = goal
        guard room.free < goal else { return nil }
        if let older = try writer.evictableOlder(), room.free + disk.size(older.path) >= goal {
            return .older
        }
        let held = writer.memory.numbers.heldBytes
        let isEnough = room.free + held + writer.memory.evictableBytes / 2 >= goal
        return isEnough && room.fileBytes / 2 >= goal ? .pending : nil
    }

    /// Evicts one step and commits it; returns false if nothing evictable is left.
    private mutating func evict(_ writer: Writer, upTo stage: Stage) throws -> Bool {
        // A fully drained older database frees the most space.
        if try writer.evictOlderFile() { return true }
        if try writer.evictUploaded() {
            try writer.commit()
            return true
        }
        guard stage != .uploaded else { return false }
        if try writer.evictHeld() {
            try writer.commit()
            return true
        }
        var hasEvicted = try writer.evictQuarantined()
        if !hasEvicted, stage == .older { hasEvicted = try writer.evictOlder() }
        if !hasEvicted, stage == .pending { hasEvicted = try writer.evictPending() }
        guard hasEvicted else { return false }
        try writer.commit()
        evictedAt = writer.clock.now()
        return true
    }

    /// The free space that sources and programs need; once it is short, 5 % more.
    private var goal: Int64 { raised(min(limits.criticalFree, Self.workingSpace), isFull) }

    private func raised(_ limit: Int64, _ isShort: Bool) -> Int64 {
        isShort ? limit + limit / 20 : limit
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

    /// `isRefused` means that the disk just refused a write, whatever it says is free.
    private mutating func update(
        _ room: StorageRoom,
        _ writer: Writer,
        isRefused: Bool = false
    ) throws {
        soundIsHeld = isRefused || room.free < raised(limits.criticalFree, soundIsHeld)
        report.room = room
        // Records wait in memory while a disk refuses writes although it has room.
        report.isFull = room.free < goal
        if isFull {
            report.level = .critical
            report.detail = "\(megabytes(room.free)) free: nothing is recorded; free some space"
        } else if room.free < limits.criticalFree {
            report.level = .critical
            report.detail = "\(megabytes(room.free)) free: audio is not recorded; free some space"
        } else if try isEvicting(room, writer) {
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

    /// Whether the next records will probably evict pending ones, as others did recently.
    private func isEvicting(_ room: StorageRoom, _ writer: Writer) throws -> Bool {
        guard let evictedAt, writer.clock.now() - evictedAt < Self.memory else { return false }
        let isNear = room.used + 2 * writer.evictionBytes > limits.file - limits.file / 50
        return try isNear && !writer.hasUploaded()
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
