// An in-memory disk for SQLite databases that loses unsynced writes in a power cut.
internal import CSimulatedDisk

/// One disk, registered with SQLite as a VFS under a unique name; several can exist side by side.
///
/// It is deterministic: it has no clock and no threads, and all randomness comes from its seeds.
/// Folders are not modelled; a path is a name.
package final class SimulatedDisk: @unchecked Sendable {
    // Unchecked because a simulation has one thread, which alone uses a disk and its handles.
    let disk: OpaquePointer

    /// Creates an empty disk; `seed` decides what faults leave behind, and seeds SQLite's random
    /// numbers from the VFS.
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

    /// Seeds SQLite's own random numbers (the salts of a WAL).
    ///
    /// They are one sequence per process, so bytes repeat only while no other thread opens
    /// databases.
    package static func seedSQLite(_ seed: UInt32) {
        waypost_disk_seed_sqlite(seed)
    }

    /// Speeds up a single-threaded program that only simulates; call it before opening any
    /// database.
    package static func useOneThread() {
        waypost_disk_use_one_thread()
    }

    /// The VFS name to pass to `sqlite3_open_v2`.
    package var vfs: String { String(cString: waypost_disk_name(disk)) }

    /// Wall clock of the SQL functions, in ms since 1970.
    package var wallMilliseconds: Int64 = 0 {
        didSet { waypost_disk_set_time(disk, wallMilliseconds) }
    }

    /// Called with a line for each operation: kind, file, offset, length and result.
    package var trace: ((String) -> Void)? {
        didSet {
            guard trace != nil else { return waypost_disk_trace(disk, nil, nil) }
            // Unretained because the disk removes the callback before it is freed.
            waypost_disk_trace(disk, record, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    // MARK: Copies

    /// Returns a second disk with the same content, synced and unsynced, without open files and
    /// faults.
    package func copy(seed: UInt64) -> SimulatedDisk {
        let copy = SimulatedDisk(owning: waypost_disk_copy(disk, seed))
        if let capacity { copy.capacity = capacity }
        copy.wallMilliseconds = wallMilliseconds
        return copy
    }

    /// The content of a disk at one point in time.
    package struct Snapshot {
        fileprivate let disk: SimulatedDisk
    }

    package func snapshot() -> Snapshot { Snapshot(disk: copy(seed: 0)) }

    /// Restores all files while the machine is off: open handles are dead.
    package func restore(_ snapshot: Snapshot) {
        waypost_disk_restore(disk, snapshot.disk.disk)
    }

    /// Shows another disk's content while `body` runs, without a copy, also to open handles.
    ///
    /// Read-only: nothing can be written, and the other disk must not change during that time.
    package func show<Value>(_ other: SimulatedDisk, _ body: () throws -> Value) rethrows -> Value {
        waypost_disk_show(disk, other.disk)
        defer { waypost_disk_hide(disk) }
        return try body()
    }

    // MARK: Faults

    /// The capacity in bytes; nil for no limit.
    ///
    /// A write that exceeds it returns SQLITE_FULL after writing as many sectors as fit.
    package var capacity: Int64? {
        didSet { waypost_disk_set_capacity(disk, capacity ?? .max) }
    }

    /// Simulates a card error: writes to open files fail, and other files open read-only.
    package var isReadOnly = false {
        didSet { waypost_disk_set_read_only(disk, isReadOnly) }
    }

    /// Simulates a card that acknowledges syncs without doing them.
    package var dropsSyncs = false {
        didSet { waypost_disk_set_drops_syncs(disk, dropsSyncs) }
    }

    /// Makes operations of these kinds fail: `times` of them, after `after` successes; at most 64
    /// faults at once.
    ///
    /// Part of a failed write may remain. After a failed sync the next one succeeds, and a power
    /// cut loses what the failed one dropped (fsync(2), Linux since 4.13).
    package func fail(_ operations: Operations, after: Int = 0, times: Int = .max) {
        let isNoted = waypost_disk_fail(disk, operations.rawValue, Int64(after), Int64(times))
        precondition(isNoted, "too many faults at once")
    }

    /// Faults were set and not cleared.
    package var hasFaults: Bool { waypost_disk_has_faults(disk) }

    /// Writes may fail.
    package var mayRefuse: Bool { hasFaults || isReadOnly || capacity != nil }

    package func clearFaults() {
        waypost_disk_clear_faults(disk)
    }

    // MARK: Counters

    /// Used space in bytes, in sectors of 512; holes take none.
    package var usedBytes: Int64 { waypost_disk_used(disk) }

    package var freeBytes: Int64 { capacity.map { max(0, $0 - usedBytes) } ?? .max }

    /// Written bytes that are not synced.
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
        /// Writes, size changes and name changes.
        package static let writes = Operations(rawValue: 2)
        package static let syncs = Operations(rawValue: 4)
        /// Reads and opening of quarantined databases.
        package static let olderReads = Operations(rawValue: 8)
        package static let all: Operations = [.reads, .writes, .syncs]
    }

    /// Counts of operations since the disk was created.
    package struct Counters: Sendable, Equatable {
        package var bytesWritten: Int64
        package var syncs: Int64
        package var operations: Int64
    }
}

private func record(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    // Unretained as it was passed.
    let disk = Unmanaged<SimulatedDisk>.fromOpaque(context).takeUnretainedValue()
    disk.trace?(String(cString: line))
}
