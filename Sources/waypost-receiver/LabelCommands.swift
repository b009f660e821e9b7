// `waypost-receiver label`: names devices and beacons for the page.
import ArgumentParser
import Host
import ServerArchive
import ServerIndex
import ServerWeb

struct LabelCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "label",
        abstract: "Name devices and beacons on the page.",
        discussion: """
            The receiver may be running. Without options a command prints the names; an empty text removes one.

              waypost-receiver label device 9f3c2a70 --label "Hut 1, north" --group alps
              waypost-receiver label beacon c4:7c:8d:00:00:01 --label "Fox 7"
            """,
        subcommands: [Device.self, Beacon.self]
    )

    struct Device: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print or set a device's label, group and note."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The device's id, as in `devices`.") var id: String
        @Option(help: "What people call it.") var label: String?
        @Option(help: "What it belongs to, for the filter of the page.") var group: String?
        @Option(help: "What people should know about it.") var note: String?

        func run() throws {
            try place.expectThere()
            let isKnown = try place.orFail {
                try Contacts.read(directory: place.data)[id] != nil
                    || Enrolments(directory: place.data).devices()[id] != nil
            }
            guard isKnown else {
                throw place.failure(
                    "no device \(printable(id, limit: 80)) has sent or enrolled; see `devices`"
                )
            }
            try place.orFail {
                let names = try Names(directory: place.data)
                var known = try names.current().devices[id] ?? DeviceNames()
                guard label != nil || group != nil || note != nil else { return Self.show(known) }
                known.label = label ?? known.label
                known.group = group ?? known.group
                known.note = note ?? known.note
                try names.set(known, of: id)
            }
        }

        private static func show(_ names: DeviceNames) {
            for (title, text) in [
                ("label", names.label), ("group", names.group), ("note", names.note),
            ] where !text.isEmpty { print("\(title)  \(text)") }
        }
    }

    struct Beacon: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print or set a beacon's label."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The beacon_id or address, as in the records.") var id: String
        @Option(help: "What people call it.") var label: String?

        func run() throws {
            try place.expectThere()
            try place.orFail {
                let names = try Names(directory: place.data)
                if let label { return try names.set(label, ofBeacon: id) }
                if let known = try names.current().beacons[id] { print("label  \(known)") }
            }
        }
    }
}
