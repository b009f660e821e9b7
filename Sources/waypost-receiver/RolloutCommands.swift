// `waypost-receiver settings rollout`: gives settings to the devices of a group in stages.
import ArgumentParser
import Host
import JSON
import ServerArchive
import ServerIndex
import ServerWeb

struct RolloutCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout",
        abstract: "Give settings to the devices of a group in stages.",
        discussion: """
            The next stage begins when each device of the one before has kept the version for two of its intervals. \
            If one rolls it back, falls silent or loses more records than before, the rollout halts, with an alert.

              waypost-receiver settings rollout --group forest --stages 1,10%,100% quiet.toml
              waypost-receiver settings rollout show
            """,
        subcommands: [Start.self, Show.self, Stop.self, Resume.self],
        defaultSubcommand: Start.self
    )

    struct Start: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Start a rollout; the running server does the rest."
        )

        @OptionGroup var place: DataLocation
        @Option(help: "The group of the devices, as in `label device`.") var group: String
        @Option(help: "How many devices have it after each stage: counts, shares, last 100%.")
        var stages: String
        @Argument(help: "The settings, TOML of at most 32 kB; - is standard input.")
        var file: String

        func run() throws {
            // Later, root becomes a user who may not be able to read the file.
            let text = try place.orFail {
                try SettingsOptions.settings(file)
            }
            try place.expectThere()
            let rollout = try place.orFail {
                let jobs = try DeviceJobs(directory: place.data)
                let (ids, now) = (try devices(), SystemClock().wall())
                return try jobs.startRollout(text, to: group, of: ids, in: stages, at: now)
            }
            print("\(rollout.devices.count) devices, stages \(rollout.stageText)")
            report("it begins within seconds if the server runs; see `settings rollout show`")
        }

        /// Returns the known devices of the group whose tokens were not revoked.
        private func devices() throws -> [String] {
            let tokens = try Enrolments(directory: place.data).devices()
            let known = Set(try Contacts.read(directory: place.data).keys).union(tokens.keys)
            let names = try Names(directory: place.data).current().devices
            return known.filter { names[$0]?.group == group && tokens[$0]?.revoked == nil }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the last rollout of each group, and its devices."
        )

        @OptionGroup var place: DataLocation
        @Option(help: "Only that of this group.") var group: String?
        @Flag(help: "Print one JSON object.") var json = false

        func run() throws {
            try place.expectThere()
            let all = try place.orFail { try DeviceJobs(directory: place.data).rollouts() }
            let shown = all.filter { $0.group == group ?? $0.group }
            let object = encodedJSON(["rollouts": shown.map { RolloutLine($0) }])
            guard !json else { return print(String(decoding: object, as: UTF8.self)) }
            let text = shown.map(\.facts).joined(separator: "\n\n")
            print(text.isEmpty ? "no rollout was started yet" : text)
        }
    }

    struct Stop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop a rollout: no other device gets the version."
        )

        @OptionGroup var options: RolloutOptions

        func run() throws {
            try options.change { $0.stop(at: $1) }
        }
    }

    struct Resume: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Go on with a rollout that halted, without the devices that failed."
        )

        @OptionGroup var options: RolloutOptions

        func run() throws {
            try options.change { rollout, now in
                rollout.resume(at: now)
                return []
            }
        }
    }
}

/// The rollout that a command changes.
struct RolloutOptions: ParsableArguments {
    @OptionGroup var place: DataLocation
    @Option(help: "The group of the rollout.") var group: String

    /// Changes the rollout at a time, in milliseconds since 1970, and prints its status.
    func change(_ body: @Sendable (inout Rollout, Int64) -> [Rollout.Action]) throws {
        try place.expectThere()
        let now = SystemClock().wall().milliseconds
        let changed = try place.orFail {
            try DeviceJobs(directory: place.data).changeRollout(to: group) { body(&$0, now) }
        }
        guard let changed else {
            throw place.failure("there is no rollout to group \(printable(group, limit: 80))")
        }
        print(changed.status.rawValue)
    }
}

extension Rollout {
    fileprivate var stageText: String { stages.map { "\($0)" }.joined(separator: ", ") }

    /// The facts for people; devices that wait for their stage are counted only.
    fileprivate var facts: String {
        let counts = Dictionary(grouping: devices, by: \.state.rawValue).mapValues(\.count)
        let counted = counts.sorted { $0.key < $1.key }.map { "\($1) \($0)" }
        let time = TextTable.minute(WallTime(milliseconds: changed).rfc3339)
        let because = culprit.isEmpty ? "" : ": \(culprit): \(reason)"
        let rows = devices.filter { $0.state != .pending }.map { device in
            [
                device.deviceId, device.state.rawValue, "\(device.version)",
                device.answer?.name ?? "-", device.reason,
            ]
        }
        let table = TextTable(rows: [["DEVICE", "STATE", "VERSION", "ANSWER", "REASON"]] + rows)
        return """
            group    \(group)
            status   \(status.rawValue) since \(time)\(because)
            stage    \(min(stage + 1, stages.count)) of \(stages.count): \(stageText) devices
            devices  \(counted.joined(separator: ", "))

            \(table.text)
            """
    }
}

/// A rollout as JSON, in snake case.
private struct RolloutLine: Encodable {
    struct Device: Encodable {
        let deviceId: String
        let state: String
        let version: Int64
        let answer: String?
        let reason: String?
    }

    let group: String
    let status: String
    let since: String
    let stage: Int
    let stages: [Int]
    let haltedBy: String?
    let reason: String?
    let devices: [Device]

    init(_ rollout: Rollout) {
        (group, status) = (rollout.group, rollout.status.rawValue)
        since = WallTime(milliseconds: rollout.changed).rfc3339
        (stage, stages) = (min(rollout.stage + 1, rollout.stages.count), rollout.stages)
        haltedBy = rollout.culprit.isEmpty ? nil : rollout.culprit
        reason = rollout.culprit.isEmpty ? nil : rollout.reason
        devices = rollout.devices.map {
            let reason = $0.reason.isEmpty ? nil : $0.reason
            let (state, answer) = ($0.state.rawValue, $0.answer?.rawValue)
            return Device(
                deviceId: $0.deviceId,
                state: state,
                version: $0.version,
                answer: answer,
                reason: reason
            )
        }
    }
}
