// `waypost listen`: gives the live recording to other programs.
import ArgumentParser
import CLinux
import Configuration
import Glibc
import Host
import Listen
import Setup

extension AudioFormat: ExpressibleByArgument {}

struct ListenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Write the live audio to standard output, or run a detector on it.",
        discussion: """
            The audio is what the gateway records, from now on, a second or two late. Up to 16 programs may \
            listen; none of them delays the recording. One that reads too slowly loses the oldest samples, \
            which is reported on standard error. A WAV file from a pipe has no length in its header.

            With --segments, CMD is run once per segment by /bin/sh, with these variables: WAYPOST_FILE (a \
            WAV file in memory, deleted afterwards), WAYPOST_START (RFC 3339), WAYPOST_DURATION (seconds), \
            WAYPOST_DEVICE, and WAYPOST_LATITUDE and WAYPOST_LONGITUDE if the position is known. One CMD runs \
            at a time; segments that it has no time for are skipped and counted. With --put, each JSON object \
            that it prints in a line becomes a record, dated at the segment's start plus its offset_s.

            Exit status: 0 stopped by a signal, 1 cannot listen, 2 standard output failed.
            """
                + examples(
                    "waypost listen | aplay",
                    "waypost listen --rate 48000 --format s16le | sox -t raw -r 48000 -e signed -b 16 -c 1 - x.flac",
                    "waypost listen --segments 3s --exec 'detect \"$WAYPOST_FILE\"' --put birds"
                )
    )

    @Option(
        help: .value("HZ", "Convert to this sample rate. Default: as recorded (audio.rate).")
    )
    var rate: Int?
    @Option(help: .value("FORMAT", "wav, or s16le: samples without a header. Default: wav."))
    var format: AudioFormat?
    @Option(help: .value("D", "Run a detector on segments of this length: 100ms to 1m."))
    var segments: String?
    @Option(name: .customLong("exec"), help: .value("CMD", "The detector, for /bin/sh."))
    var command: String?
    @Option(
        help: .value("STREAM", "Store the lines that CMD prints in this stream."),
        completion: CompletedNames.declared.completion
    )
    var put: String?
    @Option(help: .value("TIME", "End CMD after this time. Default: 10 segments, at least 30s."))
    var timeout: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        if let rate, !(1000...384_000).contains(rate) {
            throw ValidationError(
                "--rate \(rate) is not between 1000 and 384000 samples per second"
            )
        }
        guard (segments == nil) == (command == nil) else {
            throw ValidationError(
                "--segments and --exec belong together: the length, and what to run"
            )
        }
        if segments == nil, put != nil || timeout != nil {
            throw ValidationError("--put and --timeout are for --segments with --exec")
        }
        if segments != nil, format != nil {
            throw ValidationError(
                "--format is for standard output; CMD of --segments gets WAV files"
            )
        }
        if let segments, length == nil {
            throw ValidationError(
                "--segments \"\(segments.blanked)\" is not a time from 100ms to 1m, such as 3s"
            )
        }
        if let timeout { try expectTimeout(timeout) }
    }

    private var length: Duration? {
        segments.flatMap { duration(of: $0) }.flatMap {
            (.milliseconds(100) ... .seconds(60)).contains($0) ? $0 : nil
        }
    }

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let stream = try put.map { try declaredStream($0, configuration, options.config) }
        let warn: @Sendable (String) -> Void = { Output.error("waypost listen: \($0)") }
        let client = ListenClient(configuration, warn: warn)
        do {
            if let length, let command {
                // Before any thread starts, so that all of them leave the signals to this one.
                let signals = waypost_take_signals()
                try client.connect()
                let detector = try DetectorRun(
                    settings(command, length, stream),
                    configuration,
                    client,
                    warn: warn
                )
                try detector.run(signals: signals)
            } else {
                try client.connect()
                try copy(client)
            }
        } catch {
            warn("\(error)")
            throw ExitCode(1)
        }
    }

    private func settings(
        _ command: String,
        _ length: Duration,
        _ stream: UserStream?
    ) -> DetectorSettings {
        DetectorSettings(
            command: command,
            length: length,
            rate: rate,
            limit: timeout.flatMap { duration(of: $0) } ?? max(.seconds(30), length * 10),
            stream: stream,
            environment: Environment.all
        )
    }

    /// Copies the audio to standard output; never returns without an error.
    private func copy(_ client: ListenClient) throws {
        var output = AudioOutput(format ?? .wav, rate: rate)
        let clock = SystemClock()
        while true {
            var entries = [client.entry()]
            _ = wait(for: &entries, timeout: max(.zero, client.due - clock.now()))
            for piece in try client.turn(entries[0]) { Output.write(try output.bytes(piece)) }
        }
    }
}
