// Maps beacon identities to rows of `beacons`.
import Host
import Records
import SQLite

/// A cache of recently heard beacon identities and their rows.
///
/// A beacon gets a row when it is first heard. The row covers its sightings until the identity
/// leaves the cache; if heard again later, it gets a new row. So no index is needed, rotating
/// addresses do not use memory forever, and rows whose last sighting is purged can be deleted.
final class IdentityCache {
    static let limit = 4096

    private struct Entry {
        var row: Int64
        var used: UInt64
    }

    private var entries: [BeaconIdentity: Entry] = [:]
    private var uses: UInt64 = 0
    /// Rows that will not be used again, but whose end is not committed yet.
    private var closing: Set<Int64> = []
    /// The open transaction has closed them.
    private var areClosed = true
    private let insert: Statement
    private let close: Statement

    init(_ connection: borrowing Connection) throws {
        insert = try connection.prepare(
            """
            INSERT INTO beacons(kind, beacon_id, address, address_type, tx_power, id)
            VALUES (?,?,?,?,?,?)
            """
        )
        close = try connection.prepare("UPDATE beacons SET last_sighting=? WHERE id=?")
        // Rows still open are from an earlier process, whose cache is gone.
        try connection.run(
            "UPDATE beacons SET last_sighting=(SELECT max(id) FROM sightings) WHERE last_sighting IS NULL"
        )
    }

    /// Empties the cache after a rollback; the next transaction closes the rows that exist.
    func forgetAll() {
        closing.formUnion(entries.values.map(\.row))
        areClosed = false
        entries.removeAll()
    }

    /// Forgets the rows that the committed transaction closed.
    func committed() { if areClosed { closing.removeAll() } }

    /// Returns the row of an identity; inserts it if it is new.
    ///
    /// `next` is the sequence number about to be used, `numbers` the next row number. Rows are
    /// never reused: sightings in other databases may refer to deleted ones.
    func row(of identity: BeaconIdentity, next: Int64, numbers: inout Int64) throws -> Int64 {
        uses &+= 1
        if let index = entries.index(forKey: identity) {
            entries.values[index].used = uses
            return entries.values[index].row
        }
        // Close first: after a rollback, numbers of rows that do not exist are assigned again.
        if !areClosed { try closeAll(below: numbers, next: next) }
        if entries.count >= Self.limit { try evict(next: next) }
        try insert.bind(Int64(identity.kind.rawValue), at: 1)
        try insert.bind(identity.beaconID, at: 2)
        try insert.bind(Int64(identity.address.value), at: 3)
        try insert.bind(Int64(identity.addressType.rawValue), at: 4)
        try insert.bind(identity.txPower.map(Int64.init), at: 5)
        let row = numbers
        try insert.bind(row, at: 6)
        try insert.run()
        numbers += 1
        entries[identity] = Entry(row: row, used: uses)
        invariant(entries.count <= Self.limit, "the cache is bounded")
        return row
    }

    /// Evicts the older half, so that a flood of new addresses does not evict on every insert.
    private func evict(next: Int64) throws {
        let middle = entries.values.map(\.used).sorted()[entries.count / 2]
        for entry in entries.values where entry.used < middle {
            try close(entry.row, next: next)
            closing.insert(entry.row)
        }
        entries = entries.filter { $0.value.used >= middle }
    }

    private func closeAll(below end: Int64, next: Int64) throws {
        invariant(entries.isEmpty, "a row in use is not closed")
        for row in closing where row < end { try close(row, next: next) }
        areClosed = true
    }

    /// Marks a row as unused from sequence number `next` on.
    private func close(_ row: Int64, next: Int64) throws {
        try close.bind(next - 1, at: 1)
        try close.bind(row, at: 2)
        try close.run()
    }
}
