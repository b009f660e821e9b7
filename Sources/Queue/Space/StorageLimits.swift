// Storage limits, available space, and the level that results.
import CLinux
import Glibc
import Records
import SQLite

/// Limits from the configuration (`storage.*`), in bytes.
package struct StorageLimits: Sendable, Equatable {
    /// The database including its WAL.
    package var maxSize: Int64
    /// Below this much free space, uploaded records are deleted early.
    package var warnFree: Int64
    /// Below this much free space, audio stops; at most below 4 MiB of it, everything does.
    package var criticalFree: Int64

    /// The least that `max_size = "auto"` is, where it fits beside other files.
    private static let usualSize: Int64 = 2_000_000_000

    /// Half of a file system with `total` bytes; 2 GB if that is more and fits, or if nothing is known.
    static func automaticSize(total: Int64?) -> Int64 {
        guard let total, total > 0 else { return usualSize }
        return total >= usualSize + usualSize / 10 ? max(total / 2, usualSize) : total / 2
    }

    package init(
        maxSize: Int64 = Self.usualSize,
        warnFree: Int64 = 100_000_000,
        criticalFree: Int64 = 50_000_000
    ) {
        self.maxSize = maxSize
        self.warnFree = warnFree
        self.criticalFree = criticalFree
    }

    /// The WAL's share of `maxSize`.
    var journal: Int64 { min(4 << 20, max(64 << 10, maxSize / 20)) }

    /// The database file's share.
    var file: Int64 { max(256 << 10, maxSize - journal) }

    /// The maximum for records put together: evicting for them never takes over half of the file.
    var put: Int { Int(min(4 << 20, file / 8)) }
}

/// The available and used space, in bytes.
package struct StorageRoom: Sendable, Equatable {
    package var fileBytes: Int64 = 0
    package var journalBytes: Int64 = 0
    /// Free pages of the database file.
    package var reusableBytes: Int64 = 0
    package var fileSystemFree: Int64 = 0

    /// Space for new records; includes reusable pages, so that evictions have an effect.
    package var free: Int64 { fileSystemFree + reusableBytes }

    /// Bytes of the database file in use.
    var used: Int64 { fileBytes - reusableBytes }
}

/// The state of the queue's storage.
package enum StorageLevel: String, Sendable {
    case ok
    /// Less than `warnFree`.
    case low
    /// Less than `criticalFree`: audio is not recorded.
    case critical
    /// Pending records are evicted at `maxSize`.
    case full
}

/// The storage state on the status board.
package struct StorageReport: Sendable, Equatable {
    package var path: String
    package var level = StorageLevel.ok
    package var room = StorageRoom()
    /// Others fill the disk: only the program's own records are accepted.
    package var isFull = false
    /// Why the level is not `ok`, for people.
    package var detail = ""
}
