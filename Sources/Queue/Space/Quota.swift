// Keeps the queue within its limits: what goes when space ends (decision: uploaded, quarantined, pending).
import Host
import Records
import SQLite

/// Watches the room after commits and deletes what has to go, in the order that was decided.
struct Quota {
    /// Work at a time: records must not wait long for it.
    private static let slice = Duration.milliseconds(200)
    /// A level that a record had to give way for is shown this long.
    private static let memory = Duration.seconds(600)
    /// The smallest room that pending records give way for when others fill the disk.
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
    /// When records that wait last had to go.
    private var evictedAt: BootInstant?
    private var journalTriedAt: BootInstant?
    /// Its file is as long as it gets.
    private var journalIsLong = false
    /// Who keeps the journal from being emptied.
    private var holder: DatabaseHolder?
    /// The size that SQLite was told.
    private var limited: Int64 = 0
    /// What the file system had when it could last be told; a terabyte before.
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

    /// A connection that was opened anew does not know its limits yet, and the first turn may be a flood.
    mutating func begin(_ writer: Writer) throws {
        limited = 0
        journalIsLong = false
        try limit(writer)
    }

    /// Called after each commit, and by the health timer with `force`; a hundred times a second at most.
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

    /// Called when SQLite has no room for a record: frees some by all means; false when nothing could go.
    ///
    /// `isRepeated`: that was tried, and did not help. Where others fill the disk it never will.
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
            // As for the goal of pending records: half of the database is the most that is given.
            let pending = isOwnLimit ? Stage.pending : .older
            let stage = now.reusableBytes < now.fileBytes / 2 ? pending : .quarantined
            guard now.reusableBytes < goal, try evict(writer, upTo: stage) else { break }
            freed = true
        }
        try? writer.checkpoint(waiting: true)
        update(try measure(writer), writer.clock.now())
        return freed || hadReserve
    }

    // MARK: What has to go

    private enum Stage: Int {
        case uploaded
        case quarantined
        case pending
        /// What waits in a database that was set aside, before that: its file gives room to the disk, none to this one.
        case older
    }

    /// How far down the order the room demands to go now; nil when there is enough.
    private func stageNeeded(_ room: StorageRoom) -> Stage? {
        if room.free < pendingGoal(room) { return .older }
        if room.used > limits.file - limits.file / 50 { return .pending }
        if room.free < limits.criticalFree { return .quarantined }
        return room.free < limits.warnFree ? .uploaded : nil
    }

    /// Free space below which records that wait give way.
    ///
    /// Where others fill the disk, deleting everything would not help them and cost all: at most half of
    /// the database is given for it.
    private func pendingGoal(_ room: StorageRoom) -> Int64 {
        min(limits.criticalFree, max(Self.smallestGoal, room.fileBytes / 2))
    }

    /// One step of an eviction, committed; false when nothing that may go is left.
    private mutating func evict(_ writer: Writer, upTo stage: Stage) throws -> Bool {
        // An older database that holds nothing which waits any more gives most back.
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

    /// Sound stops first and comes back when there is clearly room for it.
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
        // A folder that is away for a moment is no full disk: nothing is evicted for it.
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

    /// A limit that was lowered: gives pages back to the file system, some at a time.
    private mutating func shrink(_ writer: Writer) throws {
        try writer.begin()
        try writer.connection.execute("PRAGMA incremental_vacuum(\((1 << 20) / writer.pageBytes))")
        try writer.commit()
        try limit(writer)
        if try writer.reusableBytes() > 0 { isBehind = true }
    }

    /// Gives the journal the length at which it is written back, once a start.
    ///
    /// What overwrites it changes no size and takes no new blocks, so a commit does not make the file system write
    /// its own books, and wait for them, too (fdatasync(2)).
    private mutating func lengthenJournal(_ writer: Writer, _ room: StorageRoom) {
        let bytes = limits.journal / 2
        guard settings.lengthensJournal, !journalIsLong, room.free > limits.warnFree + bytes else {
            return
        }
        journalIsLong = true
        _ = writer.connection.lengthenJournal(to: bytes)
    }

    /// Writes the journal back before it has grown much beyond its share.
    ///
    /// SQLite does so by itself, unless a reader is always there; readers of ours never stay.
    private mutating func keepJournal(_ writer: Writer, _ now: BootInstant) throws {
        guard disk.size(path + "-wal") > 2 * limits.journal else {
            holder = nil
            return
        }
        if let tried = journalTriedAt, now - tried < .seconds(2) { return }
        try writer.checkpoint(waiting: true)
        // Only in vain: a reader stays, and waiting for it again would hold up the records.
        let isCut = disk.size(path + "-wal") <= 2 * limits.journal
        journalTriedAt = isCut ? nil : now
        holder = isCut || disk.vfs != nil ? nil : DatabaseHolder.reader(of: path)
    }

    private mutating func update(_ room: StorageRoom, _ now: BootInstant) {
        report.room = room
        let recently = evictedAt.map { now - $0 < Self.memory } ?? false
        if room.free < limits.criticalFree {
            report.level = .critical
            report.detail = "\(megabytes(room.free)) free: no sound is recorded, free some space"
        } else if recently {
            report.level = .full
            report.detail = "full: the oldest records give way until uploads catch up"
        } else if room.free < limits.warnFree {
            report.level = .low
            report.detail = "\(megabytes(room.free)) free: uploaded records go early"
        } else {
            report.level = .ok
            report.detail = ""
        }
        if let holder, report.level == .ok {
            report.detail =
                "the journal has \(megabytes(room.journalBytes)): \(holder.name) (process \(holder.pid)) "
                + "does not stop reading the database; end it"
        }
    }

    private func megabytes(_ bytes: Int64) -> String { "\(bytes / 1_000_000) MB" }
}

extension Writer {
    /// The most pages that the database may have; SQLite answers FULL beyond it.
    package func limitPages(_ pages: Int64) throws {
        _ = try connection.integer("PRAGMA max_page_count=\(pages)")
    }

    /// Journal size to which its file is cut; it is written back from half of that, so that a transaction fits.
    func limitJournal(_ bytes: Int64) throws {
        _ = try connection.integer("PRAGMA wal_autocheckpoint=\(bytes / 2 / (pageBytes + 24))")
        _ = try connection.integer("PRAGMA journal_size_limit=\(bytes)")
    }

    /// Writes the journal back into the database and empties it; `waiting` gives readers a moment to leave.
    func checkpoint(waiting: Bool) throws {
        try commit()
        connection.waitForOthers(milliseconds: waiting ? 250 : 0)
        defer { connection.waitForOthers(milliseconds: 5000) }
        _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
    }
}
