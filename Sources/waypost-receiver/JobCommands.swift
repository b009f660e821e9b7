// `waypost-receiver job` and `report`: ask a device to do something, and wait for its answer.
import ArgumentParser
import Foundation
import Host
import ServerArchive
import ServerBase
import ServerWeb

/// The device that a command is for.
struct KnownDevice: ParsableArguments {
    @OptionGroup var place: DataLocation
    @Argument(help: "The device's id, as in `devices`.") var device: String

    /// Runs `body` on the jobs; fails for a device that this server does not know.
    func perform<Value>(_ body: (DeviceJobs) throws -> Value) throws -> Value {
        try place.expectThere()
        return try place.orFail {
            let isKnown =
                try Contacts.read(directory: place.data)[device] != nil
                || Enrolments(directory: place.data).devices()[device] != nil
            guard isKnown else {
                let shown = printable(device, limit: 80)
                throw Failure("no device \(shown) has sent or enrolled; see `devices`")
            }
            return try body(DeviceJobs(directory: place.data))
        }
    }

    /// Returns the end of a job that is good for some days.
    static func end(inDays days: Int) -> WallTime {
        SystemClock().wall() + .seconds(Int64(min(max(0, days), 3660)) * 86_400)
    }
}

/// The device that a job is for, and how long the job is good.
struct JobOptions: ParsableArguments {
    @OptionGroup var known: KnownDevice
    @Option(help: ArgumentHelp("Days until the job expires.", valueName: "days")) var expires = 7

    /// Adds a job; returns its id.
    func add(_ kind: String, _ parameters: [String: String], to jobs: DeviceJobs) throws -> String {
        let end = KnownDevice.end(inDays: expires)
        return try jobs.add(kind, parameters, of: known.device, until: end)
    }
}

struct JobCommand: ParsableCommand {
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case report, sync, restart, resend, upgrade
    }

    static let configuration = CommandConfiguration(
        commandName: "job",
        abstract: "Ask a device to do something at its next upload, and print the job's id.",
        discussion: """
            The device does it if its own configuration allows that (remote.allow = ["operate"], for an upgrade \
            ["upgrade"]), and answers with a record of waypost_replies; to an upgrade with a second one when it is over. \
            A device with remote.key takes no upgrade without a signature (waypost-protocol(7), JOBS).

              waypost-receiver job 9f3c2a70 restart --source audio
              waypost-receiver job 9f3c2a70 resend --stream weather --since 2026-11-22T00:00:00Z
              waypost-receiver job 9f3c2a70 upgrade --version 0.2.0
            """
    )

    @OptionGroup var options: JobOptions
    @Argument(help: "report, sync, restart, resend or upgrade.") var kind: Kind
    @Option(help: "With restart: beacons, location or audio.") var source: String?
    @Option(help: "With resend: the stream; all without it.") var stream: String?
    @Option(help: "With resend: uploaded from this time on, as 2026-11-22T04:30:00Z.")
    var since: String?
    @Option(help: "With resend: uploaded before this time.") var until: String?
    @Option(help: "With upgrade: the version of the package waypost.") var version: String?
    @Option(help: "With upgrade: a file of minisign(1) for this device and version.")
    var signature: String?

    mutating func validate() throws {
        let times = [since, until].compactMap { $0 }
        guard (kind == .restart) == (source != nil), (kind == .resend) == (since != nil),
            kind == .resend || stream ?? until == nil, (kind == .upgrade) == (version != nil),
            kind == .upgrade || signature == nil,
            times.allSatisfy({ WallTime(rfc3339: $0) != nil })
        else {
            throw ValidationError(
                "restart takes --source NAME; resend takes --since TIME, and --until TIME and "
                    + "--stream NAME if needed; a TIME is as 2026-11-22T04:30:00Z; "
                    + "upgrade takes --version V, and --signature FILE if needed"
            )
        }
    }

    func run() throws {
        // Later, root becomes a user who may not be able to read the file.
        let signature = try options.known.place.orFail {
            try self.signature.map { try SettingsOptions.read($0, limit: DeviceJobs.maxSignature) }
        }
        let given = [
            "source": source, "stream": stream, "since": since, "until": until, "version": version,
            "signature": signature,
        ]
        let parameters = given.compactMapValues { $0 }
        print(try options.known.perform { try options.add(kind.rawValue, parameters, to: $0) })
    }
}

struct AudioJobCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audio",
        abstract: "Ask a device for the sound of a span of time, and print the job's id.",
        discussion: """
            A device with audio.upload = "marked" then uploads what it still has of it, at its next upload or the one \
            after it, if its own configuration allows jobs (remote.allow = ["operate"]).

              waypost-receiver audio 9f3c2a70 --from 2026-11-22T04:00:00Z --to 2026-11-22T05:00:00Z
            """
    )

    @OptionGroup var options: JobOptions
    @Option(help: "Its start, as 2026-11-22T04:00:00Z.") var from: String
    @Option(help: "Its end.") var to: String

    mutating func validate() throws {
        guard let start = WallTime(rfc3339: from), let end = WallTime(rfc3339: to), start < end
        else {
            throw ValidationError("--from and a --to after it are times as 2026-11-22T04:30:00Z")
        }
    }

    func run() throws {
        let span = ["from": from, "to": to]
        print(try options.known.perform { try options.add("audio", span, to: $0) })
    }
}

struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Ask a device for its status, and print it when it has come.",
        discussion: """
            The device answers at its next upload, if its own configuration allows that \
            (remote.allow = ["operate"]). A report that was asked for before is waited for, not asked again.

            Exit status: 0 the report is printed, 1 it has not come, or the device refused.
            """
    )

    @OptionGroup var options: JobOptions
    @Flag(help: "Print the record of the reply, one JSON object.") var json = false
    @Option(help: ArgumentHelp("How long to wait for it.", valueName: "seconds")) var wait = 600
    @Flag(help: "Print the newest report that has come, and ask for none.") var last = false

    func run() throws {
        let device = options.known.device
        let record = try options.known.perform { jobs in
            let id =
                last
                ? nil : try jobs.openReport(of: device) ?? options.add("report", [:], to: jobs)
            let end = ContinuousClock.now + .seconds(last ? 0 : max(0, wait))
            while true {
                if let record = try jobs.record(of: id, of: device) { return record }
                guard ContinuousClock.now < end else {
                    throw Failure(
                        last
                            ? "\(device) has sent no report yet"
                            : "the report has not come; \(device) stays asked, and "
                                + "`report \(device) --last` prints it later"
                    )
                }
                Thread.sleep(forTimeInterval: 0.5)
            }
        }
        let text = ReportText(record)
        print(json ? record : text.text)
        if !text.isDone { throw ExitCode(1) }
    }
}
