// `waypost-receiver prune`: deletes days that are older than an age.
import ArgumentParser
import Host
import ServerIndex

struct PruneCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Delete whole days that are older than an age; the server may be running.",
        discussion: """
            A day counts by the date of its records (UTC), also if they have just arrived. Ids stay known: a record that a \
            device sends again is not stored again.
            """
    )

    @Option(help: ArgumentHelp("The age in days, such as 90d.", valueName: "days"))
    var olderThan: KeptDays
    @Option(help: "Only this stream.") var stream: String?
    @Option(help: "Only this device.") var device: String?
    @Flag(help: "Show what would be deleted, and delete nothing.") var dryRun = false
    @Flag(help: "Delete although the clock is not synchronised; check it first.")
    var trustClock = false
    @OptionGroup var place: DataLocation

    func run() throws {
        try place.expectThere()
        try expectClock()
        var retention = Retention(days: stream == nil ? olderThan.days : nil)
        if let stream { retention.streams[stream] = olderThan.days }
        var failed = false
        let streams = try place.orFail {
            let pruning = try Pruning(place.data, retention: retention, device: device)
            if let message = try pruning.unknownStreams() { throw Failure(message) }
            return try pruning.run(isDryRun: dryRun) {
                complain($0)
                failed = true
            }
        }
        for stream in streams { print("\(dryRun ? "would delete" : "deleted") \(stream.line)") }
        if failed { throw ExitCode(1) }
        if streams.isEmpty { print("nothing is older than \(olderThan.days) days") }
    }

    /// Fails if a wrong clock could make new days look old.
    private func expectClock() throws {
        guard !dryRun, !trustClock, ClockEvidence.kernelVouches() != true else { return }
        throw place.failure(
            "nothing was deleted: the clock (\(SystemClock().wall().rfc3339)) is not synchronised "
                + "(timedatectl), and a wrong one could delete new days; if it is right, add --trust-clock"
        )
    }
}

/// A number of days such as `90d`, at least one.
struct KeptDays: ExpressibleByArgument, Equatable {
    /// A hundred years.
    private static let maximum = 36_500

    var days: Int

    init?(argument: String) {
        let digits = argument.dropLast()
        guard argument.hasSuffix("d"), digits.allSatisfy({ ("0"..."9").contains($0) }),
            let days = Int(digits), (1...Self.maximum).contains(days)
        else { return nil }
        self.days = days
    }
}

/// A value of `--retain`: `90d`, or `STREAM=90d`.
struct RetainedStream: ExpressibleByArgument {
    /// Nil for all streams that are not named.
    var stream: String?
    var days: Int

    init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count <= 2, let age = parts.last, let kept = KeptDays(argument: String(age))
        else {
            return nil
        }
        if parts.count == 2 {
            guard !parts[0].isEmpty else { return nil }
            stream = String(parts[0])
        }
        days = kept.days
    }
}

extension Retention {
    /// Combines the values of `--retain`; the last one for a stream counts.
    init(_ values: [RetainedStream]) {
        self.init()
        for value in values {
            if let stream = value.stream { streams[stream] = value.days } else { days = value.days }
        }
    }
}
