// `waypost-receiver devices`: lists devices and revokes their tokens.
import ArgumentParser
import FoundationEssentials
import Host
import JSON
import ServerArchive
import ServerWeb

struct DeviceCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the devices that have sent or enrolled, and revoke tokens.",
        subcommands: [List.self, Revoke.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the devices by their ids.")

        @OptionGroup var place: DataLocation
        @Flag(help: "Print one JSON object.") var json = false

        func run() throws {
            try place.expectThere()
            let tokens = try place.perform { try $0.devices() }
            let contacts = try place.orFail { try Contacts.read(directory: place.data) }
            let all = Set(tokens.keys).union(contacts.keys).sorted()
            let devices = all.map { DeviceLine($0, contacts[$0], tokens[$0]) }
            print(json ? DeviceLine.json(devices) : DeviceLine.table(devices))
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a device's token at once; a new code enables it again.",
            discussion:
                "A running receiver refuses the device from its next request on, whatever its token."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The device's id in the list.") var id: String

        func run() throws {
            try place.expectThere()
            let isKnown = try place.orFail { try Contacts.read(directory: place.data)[id] != nil }
            let isThere = try place.perform { try $0.revoke(id, isKnown: isKnown, at: Date()) }
            guard isThere else {
                throw place.failure("there is no device \(printable(id, limit: 80))")
            }
        }
    }
}

/// A device in the list; in snake case its members are those of the JSON object.
private struct DeviceLine: Encodable {
    struct Stream: Encodable {
        var records: Int64
        var batches: Int64
        var lastSeen: String?
    }

    var deviceId: String
    var firstSeen: String?
    var lastSeen: String?
    var enrolledAt: String?
    var replacedAt: String?
    var revokedAt: String?
    /// `valid` (from a code), `revoked`, or `none` (uses the token list, or the receiver is open).
    var token: String
    var version: String?
    var streams: [String: Stream]

    init(_ device: String, _ contact: Contact?, _ known: DeviceToken?) {
        func time(_ seconds: Int64?) -> String? {
            seconds.map { WallTime(milliseconds: $0 * 1000).rfc3339 }
        }
        deviceId = device
        firstSeen = contact?.firstSeen.rfc3339
        lastSeen = contact?.lastSeen.rfc3339
        enrolledAt = time(known?.enrolled)
        replacedAt = time(known?.replaced)
        revokedAt = time(known?.revoked)
        token = known?.revoked != nil ? "revoked" : known?.isHeld == true ? "valid" : "none"
        version = contact.flatMap { $0.version.isEmpty ? nil : $0.version }
        streams = (contact?.streams ?? [:]).mapValues {
            Stream(records: $0.records, batches: $0.batches, lastSeen: $0.lastSeen.rfc3339)
        }
    }

    static func json(_ devices: [Self]) -> String {
        String(decoding: encodedJSON(["devices": devices]), as: UTF8.self)
    }

    /// Formats one line per device, in columns.
    static func table(_ devices: [Self]) -> String {
        guard !devices.isEmpty else { return "no device has sent or enrolled yet" }
        let heads = [
            "DEVICE", "TOKEN", "ENROLLED", "FIRST SEEN", "LAST SEEN", "RECORDS", "STREAMS",
        ]
        return TextTable(rows: [heads] + devices.map(\.cells)).text
    }

    private var cells: [String] {
        let records = streams.values.reduce(0) { $0 + $1.records }
        return [
            deviceId, token, TextTable.minute(enrolledAt), TextTable.minute(firstSeen),
            TextTable.minute(lastSeen), "\(records)", streams.keys.sorted().joined(separator: " "),
        ]
    }
}
