// What a queue is made with.
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

/// What a queue needs to know.
package struct QueueSettings: Sendable {
    /// Records that may be under way to the writer before more are refused (and counted).
    package static let mailboxLimit = 20_000

    /// The database file.
    package var path: String
    /// Names this boot (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String
    package var commitInterval: Duration
    package var clock: any HostClock
    /// Sent with each batch.
    package var appVersion: String
    package var limits = StorageLimits()
    package var userStreams: [DeclaredStream] = []
    /// Kinds of stream beside those that are built in.
    package var moreStreams: [StreamKind] = []
    package var disk: any QueueDisk = SystemDisk()
    /// Free bytes of the file system that a folder is on; nil: as the disk says.
    package var freeSpace: (@Sendable (String) -> Int64)?
    package var random: @Sendable () -> UInt64 = { UInt64.random(in: 0...UInt64.max) }
    /// No threads: whoever has the queue turns it, and its maintenance, step by step.
    package var isTurnedByHand = false
    /// The journal gets the length at which it is written back at once.
    package var lengthensJournal = true
    /// Bytes kept free for deleting on a full disk.
    package var reserveBytes = Reserve.usualBytes
    /// Records that memory holds while the disk refuses.
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

    /// Opens the database, or another one beside it.
    func connect(_ path: String? = nil, _ access: Connection.Access) throws -> Connection {
        try Connection(path: path ?? self.path, access: access, vfs: disk.vfs)
    }
}
