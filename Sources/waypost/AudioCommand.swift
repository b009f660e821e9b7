// `waypost audio mark`: sends held sound of a span of time.
import ArgumentParser
import Daemon
import Host
import Status

struct AudioCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audio",
        abstract: "Choose sound that is uploaded, where not all is (audio.upload).",
        discussion: examples(
            "waypost audio mark --from 2026-11-22T04:00:00Z --to 2026-11-22T05:00:00Z"
        ),
        subcommands: [Mark.self]
    )

    struct Mark: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Have the sound of a span of time uploaded.",
            discussion: """
                Sound that is still on this device goes with the next uploads, the newest first, after what records \
                have marked; sound that is recorded in the span from now on, too. The request survives a restart.

                Exit status: 0 done, 1 no sound of then is held on this device, 2 failed.
                """
                    + examples(
                        "waypost audio mark --from 2026-11-22T04:00:00Z --to 2026-11-22T05:00:00Z",
                        "waypost audio mark --from 2h --to 1h"
                    )
        )

        @Option(
            help: .value(
                "TIME",
                "Its start (UTC): 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago."
            )
        )
        var from: String
        @Option(help: .value("TIME", "Its end.")) var to: String
        @OptionGroup var options: ConfigurationOptions

        mutating func validate() throws { _ = try request() }

        private func request() throws -> AudioMarkRequest {
            let (start, end) = try (Self.time("--from", from), Self.time("--to", to))
            guard start < end else {
                throw ValidationError(
                    "--to \(to) is not after --from \(from): the time range is empty"
                )
            }
            return AudioMarkRequest(from: start, to: end)
        }

        private static func time(_ option: String, _ text: String) throws -> WallTime {
            if let time = ExportCommand.time(text) { return time }
            throw Resend.notATime(option, text)
        }

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let request = try request()
            let changed = try reporting("audio mark") { try queue.change(request.control).changed }
            let chunks = changed?.records ?? 0
            if chunks > 0 {
                return Output.write(
                    "\(counted(chunks, "chunk")) of held sound \(chunks == 1 ? "goes" : "go") with the next uploads; "
                        + "`waypost sync` starts now\n"
                )
            }
            // Sound that is recorded from now on is not held.
            if request.to >= SystemClock().wall() {
                return Output.write(
                    "no sound of then is held; what is recorded until its end is uploaded\n"
                )
            }
            Output.error(
                "audio mark: no sound of then is held on this device; `waypost status` says what is, "
                    + "and with audio.upload = \"all\" none is"
            )
            throw ExitCode(1)
        }
    }
}
