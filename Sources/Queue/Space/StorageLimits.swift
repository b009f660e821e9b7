// How much room the queue may take, how much there is, and what that means.
import CLinux
import Glibc
import Records
import SQLite

/// Limits of the configuration (`storage.*`), in bytes.
package struct StorageLimits: Sendable, Equatable {
    /// The database with its journal.
    package var maxSize: Int64
    /// Below this much free space uploaded records go early.
    package var warnFree: Int64
    /// Below this much free space no sound is recorded, and records that wait give way.
    package var criticalFree: Int64

    package init(
        maxSize: Int64 = 2_000_000_000,
        warnFree: Int64 = 100_000_000,
        criticalFree: Int64 = 50_000_000
    ) {
        self.maxSize = maxSize
        self.warnFree = warnFree
        self.criticalFree = criticalFree
    }

    /// What the journal may take of `maxSize`.
    var journal: Int64 { min(4 << 20, max(64 << 10, maxSize / 20)) }

    /// What the database file may take.
    var file: Int64 { max(256 << 10, maxSize - journal) }

    /// What records that are put together may take: no more is ever evicted for them than half of the file.
    var put: Int { Int(min(4 << 20, file / 8)) }
}

/// What there is, in bytes.
package struct StorageRoom: Sendable, Equatable {
    package var fileBytes: Int64 = 0
    package var journalBytes: Int64 = 0
    /// Pages of the database file that new records can use.
    package var reusableBytes: Int64 = 0
    package var fileSystemFree: Int64 = 0

    package init() {}

    /// What new records can have: without the reusable pages an eviction would never see its effect.
    package var free: Int64 { fileSystemFree + reusableBytes }

    /// Bytes of the database file that hold something.
    var used: Int64 { fileBytes - reusableBytes }
}

/// How the queue's storage is.
package enum StorageLevel: String, Sendable {
    case ok
    /// Less than `warnFree`.
    case low
    /// Less than `criticalFree`: no sound is recorded.
    case critical
    /// Records that wait have to give way, at `maxSize` or for want of free space.
    case full
}

/// What the board shows of the storage.
package struct StorageReport: Sendable, Equatable {
    package var path: String
    package var level = StorageLevel.ok
    package var room = StorageRoom()
    /// Why the level is not `ok`, for people.
    package var detail = ""

    package init(path: String) {
        self.path = path
    }
}
