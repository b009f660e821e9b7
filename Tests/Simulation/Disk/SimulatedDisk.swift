// A disk in memory that SQLite opens databases on, and that loses what was not synced when the power goes.
internal import CSimulatedDisk

/// One disk, registered with SQLite as a VFS under a name of its own; several live side by side.
///
/// The same calls in the same order do the same: it has no time, no threads and no chance but from its seeds.
/// Folders are not modelled; a path is a name.
package final class SimulatedDisk: @unchecked Sendable {
    // Unchecked because a simulation has one thread, which alone uses a disk and what is opened on it.
    let disk: OpaquePointer

    /// An empty disk; `seed` decides what faults leave behind, and SQLite's random numbers from the VFS.
    package convenience init(seed: UInt64) {
        self.init(owning: waypost_disk_new(seed))
    }

    init(owning disk: OpaquePointer) {
        self.disk = disk
    }

    deinit {
        // Connections that are still open find dead handles.
        waypost_disk_trace(disk, nil, nil)
        waypost_disk_free(disk)
    }

    /// Makes SQLite's own random numbers (the salts of a journal) start from a seed.
    ///
    /// They are one stream in a process: bytes repeat as long as no other thread opens databases meanwhile.
    package static func seedSQLite(_ seed: UInt32) {
        waypost_disk_seed_sqlite(seed)
    }

    /// For a program that has one thread and does nothing but simulate: before it opens any database.
    package static func useOneThread() {
        waypost_disk_use_one_thread()
    }

    /// What `sqlite3_open_v2` is given as the VFS.
    package var vfs: String { String(cString: waypost_disk_name(disk)) }

    /// Wall clock of the SQL functions, in ms since 1970.
    package var wallMilliseconds: Int64 = 0 {
        didSet { waypost_disk_set_time(disk, wallMilliseconds) }
    }

    /// Called with a line for each operation: what, on which file, where, how much, and how it went.
    package var trace: ((String) -> Void)? {
        didSet {
            guard trace != nil else { return waypost_disk_trace(disk, nil, nil) }
            // Unretained because the disk takes the callback back before it goes.
            waypost_disk_trace(disk, note, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    // MARK: Copies

    /// A second disk with the same content, synced and not; without open files and faults.
    package func copy(seed: UInt64) -> SimulatedDisk {
        let copy = SimulatedDisk(owning: waypost_disk_copy(disk, seed))
        if let capacity { copy.capacity = capacity }
        copy.wallMilliseconds = wallMilliseconds
        return copy
    }

    /// The content of a disk at one moment.
    package struct Snapshot {
        fileprivate let disk: SimulatedDisk
    }

    package func snapshot() -> Snapshot { Snapshot(disk: copy(seed: 0)) }

    /// Rolls all files back to what they were, while the machine is off: handles are dead.
    package func restore(_ snapshot: Snapshot) {
        waypost_disk_restore(disk, snapshot.disk.disk)
    }

    /// Shows what is on another disk while `body` runs, without a copy; what is open here sees that, too.
    ///
    /// For looking only: nothing can be written, and the other disk must not change meanwhile.
    package func show<Value>(_ other: SimulatedDisk, _ body: () throws -> Value) rethrows -> Value {
        waypost_disk_show(disk, other.disk)
        defer { waypost_disk_hide(disk) }
        return try body()
    }

    // MARK: Faults

    /// Bytes that the disk has room for; nil: no limit.
    ///
    /// Beyond it a write that takes more room gives SQLITE_FULL, after as many sectors as there are.
    package var capacity: Int64? {
        didSet { waypost_disk_set_capacity(disk, capacity ?? .max) }
    }

    /// As after an error of the card: what is open fails to write, the rest opens for reading only.
    package var isReadOnly = false {
        didSet { waypost_disk_set_read_only(disk, isReadOnly) }
    }

    /// A card that lies: a sync says that it is done, and nothing is.
    package var dropsSyncs = false {
        didSet { waypost_disk_set_drops_syncs(disk, dropsSyncs) }
    }

    /// Operations of these kinds fail, after so many that do not, so many times; 64 such faults at once.
    ///
    /// Some of a write that fails may be there; after a sync that failed the next one succeeds, and what the
    /// failed one gave up is lost at a power cut (fsync(2), Linux since 4.13).
    package func fail(_ operations: Operations, after: Int = 0, times: Int = .max) {
        let isNoted = waypost_disk_fail(disk, operations.rawValue, Int64(after), Int64(times))
        precondition(isNoted, "too many faults at once")
    }

    /// Some were set, and not cleared.
    package var hasFaults: Bool { waypost_disk_has_faults(disk) }

    /// Whether what is written may be refused.
    package var mayRefuse: Bool { hasFaults || isReadOnly || capacity != nil }

    package func clearFaults() {
        waypost_disk_clear_faults(disk)
    }

    // MARK: Figures

    /// Room that is taken, in sectors of 512 bytes; holes take none.
    package var usedBytes: Int64 { waypost_disk_used(disk) }

    package var freeBytes: Int64 { capacity.map { max(0, $0 - usedBytes) } ?? .max }

    /// Bytes that were written and not synced.
    package var unsyncedBytes: Int64 { waypost_disk_unsynced(disk) }

    package var counters: Counters {
        let count = waypost_disk_count(disk)
        return Counters(
            bytesWritten: count.bytes_written,
            syncs: count.syncs,
            operations: count.operations
        )
    }
}

extension SimulatedDisk {
    /// Kinds of operation on a disk.
    package struct Operations: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Reads and opening.
        package static let reads = Operations(rawValue: 1)
        /// Writes, changes of size, names that come and go.
        package static let writes = Operations(rawValue: 2)
        package static let syncs = Operations(rawValue: 4)
        /// The same of databases that were set aside.
        package static let olderReads = Operations(rawValue: 8)
        package static let all: Operations = [.reads, .writes, .syncs]
    }

    /// What was done since the disk was made.
    package struct Counters: Sendable, Equatable {
        package var bytesWritten: Int64
        package var syncs: Int64
        package var operations: Int64
    }
}

private func note(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    // Unretained as it was given.
    let disk = Unmanaged<SimulatedDisk>.fromOpaque(context).takeUnretainedValue()
    disk.trace?(String(cString: line))
}
