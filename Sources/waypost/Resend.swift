// `waypost resend`: sends uploaded records again to a server that lost them.
import ArgumentParser
import Daemon
import Host
import Status

struct Resend: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send uploaded records again that a server restored from a backup has lost.",
        discussion: """
            Sends records that are still on this device again with the same ids, a portion with each sync, \
            after those pending; the server stores those it lacks. The request survives a restart. Records \
            are not counted as uploaded twice.

            Exit status: 0 done, 1 no such record is on this device, 2 failed.
            """
                + examples(
                    "waypost resend --since 2026-11-22",
                    "waypost resend audio --since 3d --until 1d"
                )
    )

    @Argument(
        help: .value(
            "STREAM",
            "beacons, location, audio, events or a stream of your own; all streams without it."
        ),
        completion: CompletedNames.streams.completion
    )
    var stream: String?
    @Option(
        help:
            .value(
                "TIME",
                "Uploaded from this time on (UTC): 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago."
            )
    )
    var since: String
    @Option(help: .value("TIME", "Uploaded before this time.")) var until: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws { _ = try request() }

    private func request() throws -> ResendRequest {
        guard let from = ExportCommand.time(since) else { throw Self.notATime("--since", since) }
        var request = ResendRequest(stream: stream, since: from)
        guard let until else { return request }
        guard let end = ExportCommand.time(until) else { throw Self.notATime("--until", until) }
        guard from < end else {
            throw ValidationError(
                "--until \(until) is not after --since \(since): the time range is empty"
            )
        }
        request.until = end
        return request
    }

    static func notATime(_ option: String, _ text: String) -> ValidationError {
        ValidationError(
            "\(option): \"\(text)\" is not a valid time; use 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago"
        )
    }

    mutating func run() throws {
        let queue = QueueQuestions(try options.loadOrAsk().values)
        let request = try request().control
        let changed = try reporting("resend") { try queue.change(request).changed }
        if let gone = changed?.gone, gone > 0 {
            Output.error(
                "resend: up to \(counted(gone, "record")) uploaded from then on \(gone == 1 ? "is" : "are")"
                    + " no longer on this device (storage.retention, or a full disk)"
            )
        }
        guard let changed, changed.records > 0 else {
            Output.error("resend: no record that was uploaded then is still on this device")
            throw ExitCode(1)
        }
        Output.write(
            "\(counted(changed.records, "record")) in "
                + "\(counted(changed.batches, "batch", "batches")) "
                + "\(changed.records == 1 ? "is" : "are") sent again after those pending; "
                + "`waypost sync` starts now\n"
        )
    }
}
