// The settings of a queue.
package import Host
package import Records
import SQLite

/// A stream that the user has declared (waypost.toml(5), [stream.NAME]).
package struct DeclaredStream: Sendable, Equatable {
    package var name: String
    /// Its name on the wire.
    package var wire: String

    package init(name: String, wire: String) {
        self.name = name
        self.wire = wire
    }
}

/// The settings of a queue.
package struct QueueSettings: Sendable {
    /// Records that may wait for the writer before more are refused (and counted).
    package static let mailboxLimit = 20_000

    /// The database file.
    package var path: String
    /// Identifies this boot (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String
    package var commitInterval: Duration
    package var clock: any HostClock
    /// Sent with each batch.
    package var appVersion: String
    package var limits = StorageLimits()
    package var userStreams: [DeclaredStream] = []
    /// The selection of sound that is uploaded; `Queue.upload` changes it.
    package var sound = StateBox(SoundUpload())
    /// Stream kinds besides the built-in ones.
    package var moreStreams: [StreamKind] = []
    package var disk: any QueueDisk = SystemDisk()
    /// Returns the free bytes of a folder's file system; nil uses the disk's value.
    package var freeSpace: (@Sendable (String) -> Int64)?
    package var random: @Sendable () -> UInt64 = { UInt64.random(in: 0...UInt64.max) }
    /// Runs without threads: the owner drives the queue and its maintenance step by step.
    package var isTurnedByHand = false
    /// Extends the WAL at once to the length at which it is checkpointed.
    package var lengthensJournal = true
    /// Bytes reserved for deleting on a full disk.
    package var reserveBytes = Reserve.usualBytes
    /// Records that memory holds while the disk fails.
    package var memoryLimit = Self.mailboxLimit

    package init(
        path: String,
        bootID: String,
        commitInterval: Duration = StorageSettings().commitInterval,
        clock: any HostClock = SystemClock(),
        appVersion: String
    ) {
        self.path = path
        self.bootID = bootID
        self.commitInterval = commitInterval
        self.clock = clock
        self.appVersion = appVersion
    }

    /// The folder of the database.
    var folder: String { Host.folder(ofPath: path) }

    func free() -> Int64? { freeSpace?(folder) ?? disk.free(folder) }

    /// Opens the database, or another one at `path`.
    func connect(_ path: String? = nil, _ access: Connection.Access) throws -> Connection {
        try Connection(path: path ?? self.path, access: access, vfs: disk.vfs)
    }
}
