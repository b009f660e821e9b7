// Reads a device's database without the gateway's code.
internal import Records
internal import SimulatedDisk
internal import SQLite

/// An open database; a class, because a connection cannot be copied.
final class OpenDatabase {
    let connection: Connection
    /// Keeps the disk alive: without it a connection is dead.
    private let disk: SimulatedDisk

    init(_ path: String = Device.path, on disk: SimulatedDisk) throws {
        connection = try Connection(path: path, access: .readWrite, vfs: disk.vfs)
        // Its WAL is freed with its disk.
        connection.keepJournal()
        self.disk = disk
    }

    /// All tables, with their root pages.
    var schema: String? {
        get throws {
            let rows = try connection.prepare(
                "SELECT group_concat(name || rootpage || sql) FROM sqlite_master"
            )
            return try rows.step() ? rows.text(0) : nil
        }
    }
}

/// Shows one database after another to connections that stay open, because opening takes longer
/// than all queries.
///
/// Used by one thread.
package final class View {
    /// Devices use a few different schemas in turn.
    private static let limit = 8

    /// A connection on its own disk: two on one would confuse each other's WAL index.
    private struct Open {
        var disk: SimulatedDisk
        var database: OpenDatabase
        var schema: String?
    }

    let older = OlderFiles()
    /// The most recently used first.
    private var open: [Open] = []

    package init() {}

    /// Calls `body` with the live database of a disk; if that throws, again with a copy.
    func look<Value>(at other: SimulatedDisk, _ body: (OpenDatabase) throws -> Value) throws
        -> Value
    {
        for place in open.indices {
            let view = open[place]
            let value: Value?? = try? view.disk.show(other) {
                // SQLite detects another schema only by its change counter, which may be equal by
                // chance.
                try view.database.schema == view.schema ? try body(view.database) : nil
            }
            guard let found = value else {
                open.remove(at: place)
                break
            }
            guard let found else { continue }
            open.swapAt(0, place)
            return found
        }
        if let value = try? lookAnew(other, body) { return value }
        return try body(try OpenDatabase(on: other.copy(seed: 1)))
    }

    private func lookAnew<Value>(
        _ other: SimulatedDisk,
        _ body: (OpenDatabase) throws -> Value
    ) throws -> Value {
        let disk = SimulatedDisk(seed: 1)
        return try disk.show(other) {
            let database = try OpenDatabase(on: disk)
            let schema = try database.schema
            let value = try body(database)
            if open.count == Self.limit { open.removeLast() }
            open.insert(Open(disk: disk, database: database, schema: schema), at: 0)
            return value
        }
    }
}

/// The contents of quarantined databases, which hardly ever change.
final class OlderFiles {
    private struct Key: Hashable {
        var prints: [UInt64]
        var streams: [Stream]
    }

    private var found: [Key: Presence] = [:]

    /// Returns the result of `read` on a copy of the disk, or an earlier one for a file with the
    /// same bytes.
    func find(
        _ path: String,
        _ disk: SimulatedDisk,
        _ streams: [StreamKind],
        _ read: (SimulatedDisk) -> Presence
    ) -> Presence {
        let prints = [path, path + "-wal", path + "-mark"].map { disk.fingerprint($0) }
        let key = Key(prints: prints, streams: streams.map(\.stream))
        if let known = found[key] { return known }
        if found.count > 100 { found.removeAll() }
        let presence = read(disk.copy(seed: 1))
        found[key] = presence
        return presence
    }
}
