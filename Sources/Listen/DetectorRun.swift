// Runs a detector once per segment of the live recording.
import CLinux
import Glibc
import Host
import Intake
package import Setup

/// The command of a detector, its segments, and where its lines go.
package struct DetectorSettings: Sendable {
    /// For `/bin/sh -c`.
    package var command: String
    package var length: Duration
    /// The rate of the WAV files; nil: as recorded.
    package var rate: Int?
    /// A call that takes longer is ended.
    package var limit: Duration
    /// The stream that gets the printed lines; nil: they go to standard output.
    package var stream: UserStream?
    /// The variables that the command gets beside those of the segment.
    package var environment: [String: String]

    package init(
        command: String,
        length: Duration,
        rate: Int?,
        limit: Duration,
        stream: UserStream?,
        environment: [String: String]
    ) {
        (self.command, self.length, self.rate) = (command, length, rate)
        (self.limit, self.stream, self.environment) = (limit, stream, environment)
    }
}

/// Listens, cuts segments, and runs the detector on one at a time.
///
/// The newest whole segment waits for the detector; one that waits when the next is whole is
/// skipped and counted. Nothing here slows the recording down.
package final class DetectorRun {
    /// Counts and faults are reported at most this often.
    private static let interval = Duration.seconds(60)
    private static let lineLimit = 128 << 10
    /// The time to store the last records after a stop.
    private static let stopLimit = Duration.seconds(5)

    private let settings: DetectorSettings
    private let client: ListenClient
    private let folder: SegmentFolder
    private let put: DetectionPut?
    private let clock = SystemClock()
    private var segmenter: Segmenter
    private var waiting: AudioSegment?
    private var detector: DetectorProcess?
    private var report: DetectorReport
    private var isStopping = false

    /// `client` is connected; `warn` gets messages for people, also from another thread.
    package init(
        _ settings: DetectorSettings,
        _ configuration: Configuration,
        _ client: ListenClient,
        warn: @escaping @Sendable (String) -> Void
    ) throws {
        (self.settings, self.client) = (settings, client)
        folder = try SegmentFolder(environment: settings.environment)
        put = try settings.stream.map { try DetectionPut(configuration, $0, warn: warn) }
        segmenter = Segmenter(length: settings.length)
        report = DetectorReport(interval: Self.interval, now: clock.now(), warn: warn)
    }

    /// Runs until SIGTERM, SIGINT or SIGHUP comes on `signals` (`waypost_take_signals`).
    ///
    /// Throws a `Failure` if the socket's protocol is another one, or records cannot be put.
    package func run(signals: Int32) throws {
        while !isStopping {
            if let outcome = put?.outcome { throw Self.failure(outcome) }
            try turn(signals)
        }
        stop()
    }

    private func turn(_ signals: Int32) throws {
        var entries = [
            PollEntry(signals), client.entry(), put?.entry ?? PollEntry(-1),
            PollEntry(put?.finished.descriptor ?? -1),
        ]
        entries += detector?.entries(isWanted: put?.hasRoom ?? false) ?? []
        let due = [client.due, detector?.due, report.due].compactMap { $0 }.min() ?? client.due
        _ = wait(for: &entries, timeout: max(.zero, due - clock.now()))
        if entries[0].isReady {
            isStopping = waypost_next_signal(signals) != 0
        }
        put?.flush()
        if entries.count > 4 { serve(entries[4], entries[5]) }
        for piece in try client.turn(entries[1]) { receive(piece) }
        begin()
        report.check(clock.now())
    }

    private static func failure(_ outcome: Result<some Any, any Error>) -> Failure {
        guard case .failure(let error) = outcome else {
            return Failure("the gateway takes no more records")
        }
        return (error as? Failure) ?? Failure("\(error)")
    }

    // MARK: Segments

    private func receive(_ piece: AudioPiece) {
        let (segments, left) = segmenter.receive(piece)
        if left > 0 { report.left(left, rate: piece.header.rate) }
        for segment in segments {
            if waiting != nil { report.skipped(at: clock.now()) }
            waiting = segment
        }
    }

    /// Starts the detector on the segment that waits, unless it works on one.
    private func begin() {
        guard detector == nil, !isStopping, put?.hasRoom ?? true, let segment = waiting else {
            return
        }
        waiting = nil
        report.begun()
        do {
            let file = try folder.write(segment, rate: settings.rate)
            detector = try DetectorProcess(
                settings.command,
                segment,
                environment: environment(segment, file: file),
                isRead: put != nil,
                limit: settings.limit
            )
        } catch {
            folder.clear()
            report.failed(segment, "\(error)", at: clock.now())
        }
    }

    private func environment(_ segment: AudioSegment, file: String) -> [String] {
        var all = settings.environment
        all["WAYPOST_FILE"] = file
        all["WAYPOST_START"] = segment.start.rfc3339
        all["WAYPOST_DURATION"] = "\(Double(segment.duration.nanoseconds / 1000) / 1e6)"
        all["WAYPOST_DEVICE"] = segment.device
        // Without a fix, a position that the user has set stays.
        if segment.place.count == 2 {
            all["WAYPOST_LATITUDE"] = "\(segment.place[0])"
            all["WAYPOST_LONGITUDE"] = "\(segment.place[1])"
        }
        return all.map { "\($0.key)=\($0.value)" }
    }

    // MARK: The detector

    private func serve(_ end: PollEntry, _ output: PollEntry) {
        guard let detector else { return }
        if output.isReady {
            detector.read()
            store(detector)
        }
        if end.isReady { return finish(detector) }
        let now = clock.now()
        if detector.due <= now { detector.end(at: now, isLate: true) }
    }

    private func finish(_ detector: DetectorProcess) {
        let fault = detector.reap()
        store(detector)
        folder.clear()
        self.detector = nil
        if let fault { report.failed(detector.segment, fault, at: clock.now()) }
    }

    /// Sends the detector's whole lines to the gateway.
    private func store(_ detector: DetectorProcess) {
        guard let put, let stream = settings.stream else { return }
        while let line = detector.lines.next(limit: Self.lineLimit) {
            do {
                guard case .whole(let bytes) = line else {
                    throw Failure("longer than \(Self.lineLimit) bytes")
                }
                if bytes.allSatisfy({ $0 == 32 || $0 == 9 || $0 == 13 }) { continue }
                put.send(
                    try DetectionLine.request(bytes, stream: stream.name, of: detector.segment)
                )
                report.printed()
            } catch {
                report.refused(detector.segment, "\(error)", at: clock.now())
            }
        }
    }

    // MARK: The end

    /// Ends the detector, and waits until the gateway has its records.
    private func stop() {
        if let detector {
            repeat {
                detector.end(at: clock.now(), isLate: false)
                var entries = detector.entries(isWanted: false)
                _ = wait(for: &entries, timeout: detector.due - clock.now())
                if entries[0].isReady { break }
            } while true
            _ = detector.reap()
            store(detector)
            self.detector = nil
        }
        switch put?.end(by: clock.now() + Self.stopLimit) {
        case .success(let outcome): report.stored(outcome.accepted, refused: outcome.refused)
        case .failure(let error): report.unknown("\(error)")
        case nil: if put != nil { report.unknown("the gateway has not answered") }
        }
        report.finish(lost: client.lost)
    }
}
