// The names that people give to devices and beacons.
import Host
import SQLite
import ServerBase

/// The label, group and note that people gave a device; "" for none.
package struct DeviceNames: Sendable, Equatable {
    package var label = ""
    package var group = ""
    package var note = ""

    package init() {}
}

/// All names at one time.
package struct KnownNames: Sendable {
    package fileprivate(set) var devices: [String: DeviceNames] = [:]
    /// Labels by `beacon_id` or address.
    package fileprivate(set) var beacons: [String: String] = [:]

    package init() {}

    /// Returns a device's label, or its id if it has none.
    package func title(_ device: String) -> String { label(device) ?? device }

    /// Nil if the device has no label.
    package func label(_ device: String) -> String? {
        devices[device].flatMap { $0.label.isEmpty ? nil : $0.label }
    }
}

/// The database of names, beside the records; no index or record depends on it.
///
/// A running receiver sees the changes of a command at the next request. Thread-safe.
package final class Names: Sendable {
    /// The longest texts in characters (Unicode scalars).
    package static let (longestLabel, longestGroup, longestNote) = (80, 40, 500)
    private static let longestBeacon = 200
    private static let maxBeacons = 10_000

    private static let tables = """
        CREATE TABLE IF NOT EXISTS devices(device TEXT PRIMARY KEY, label TEXT NOT NULL, "group" TEXT NOT NULL,
        note TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS beacons(beacon TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID;
        """

    private let database: WatchedDatabase<KnownNames>

    /// Opens the database of a data directory, which the receiver may have open too.
    package init(directory: String) throws {
        let path = "\(directory)/.receiver-names.sqlite"
        database = try WatchedDatabase(path, in: directory, tables: Self.tables, read: Self.read)
    }

    @Sendable private static func read(_ database: borrowing Connection) throws -> KnownNames {
        var known = KnownNames()
        let device = try database.prepare("SELECT device, label, \"group\", note FROM devices")
        while try device.step() {
            var names = DeviceNames()
            (names.label, names.group, names.note) = (
                device.text(1), device.text(2), device.text(3)
            )
            known.devices[device.text(0)] = names
        }
        let beacon = try database.prepare("SELECT beacon, label FROM beacons")
        while try beacon.step() { known.beacons[beacon.text(0)] = beacon.text(1) }
        return known
    }

    /// Returns the names, with the changes that other processes have made.
    package func current() throws -> KnownNames {
        _ = try database.refresh(waits: true)
        return database.known
    }

    /// Sets the names of a device, or those for `key(ofCode:)`; empty ones are removed.
    ///
    /// Throws `InvalidNameError`.
    package func set(_ names: DeviceNames, of device: String) throws {
        guard isName(device) || device.hasPrefix(Self.codes) else {
            throw InvalidNameError("\(printable(device)) is not a device id")
        }
        let fit = try Self.fit(names)
        try database.change { database in
            try database.run("DELETE FROM devices WHERE device=?", device)
            guard fit != DeviceNames() else { return }
            let sql = "INSERT INTO devices VALUES (?,?,?,?)"
            try database.run(sql, device, fit.label, fit.group, fit.note)
        }
    }

    private static let codes = "code:"

    /// The key of the names that wait for the device that uses a code; no device has such an id.
    package static func key(ofCode code: Int64) -> String { "\(codes)\(code)" }

    /// Gives a device that has no names those of the code that it used.
    package func adopt(_ device: String, code: Int64) throws {
        let key = Self.key(ofCode: code)
        guard database.known.devices[key] != nil else { return }
        try database.change { database in
            try database.run("UPDATE OR IGNORE devices SET device=? WHERE device=?", device, key)
            try database.run("DELETE FROM devices WHERE device=?", key)
        }
    }

    /// Returns the names as they are stored; throws `InvalidNameError`.
    @discardableResult
    package static func fit(_ names: DeviceNames) throws -> DeviceNames {
        var fit = DeviceNames()
        fit.label = try Self.fit("label", names.label, longestLabel)
        fit.group = try Self.fit("group", names.group, longestGroup)
        fit.note = try Self.fit("note", names.note, longestNote)
        return fit
    }

    /// Sets a beacon's label; an empty one is removed.
    ///
    /// Throws `InvalidNameError`.
    package func set(_ label: String, ofBeacon beacon: String) throws {
        let beacon = try Self.fit("beacon's id", beacon, Self.longestBeacon)
        guard !beacon.isEmpty else { throw InvalidNameError("the beacon's id is missing") }
        let label = try Self.fit("label", label, Self.longestLabel)
        try database.change { database in
            try database.run("DELETE FROM beacons WHERE beacon=?", beacon)
            guard !label.isEmpty else { return }
            let count = try database.integer("SELECT count(*) FROM beacons") ?? 0
            guard count < Self.maxBeacons else {
                throw InvalidNameError("\(count) beacons have a label already; remove some first")
            }
            try database.run("INSERT INTO beacons VALUES (?,?)", beacon, label)
        }
    }

    /// Returns the text without blanks around it; throws `InvalidNameError` if it is too long or has
    /// characters that would change how the text around it looks.
    private static func fit(_ what: String, _ text: String, _ longest: Int) throws -> String {
        let text = trimmed(text)
        let count = text.unicodeScalars.count
        guard count <= longest else {
            throw InvalidNameError("the \(what) has \(count) characters; use at most \(longest)")
        }
        guard !text.unicodeScalars.contains(where: \.isInvisible) else {
            throw InvalidNameError(
                "the \(what) has a line end or another control character; remove it"
            )
        }
        return text
    }
}

/// A name that cannot be stored, and why.
package struct InvalidNameError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
