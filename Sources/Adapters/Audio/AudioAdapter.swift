// The sound source: a microphone to encoded segments in the queue.
package import Board
internal import Glibc
package import Host
package import Store

/// What the sound source needs to know.
package struct AudioSettings: Sendable {
    /// ALSA PCM names in order of preference.
    package var devices: [String]
    /// Frames a second.
    package var rate = 16_000
    package var chunk = Duration.seconds(30)
    package var overlap = Duration.seconds(2)
    package var codec = AudioCodec.opus
    /// Bits a second, for Opus and AAC.
    package var bitrate = 24_000
    /// Chunks quieter than this (dBFS) are not kept.
    package var minimumLevel: Double?

    package init(devices: [String]) {
        self.devices = devices
    }

    /// The overlap, so that a chunk shares whole segments with its neighbour.
    private var step: Duration { overlap > .zero ? overlap : .seconds(2) }

    /// Segments of an overlap: each is stored as it ends, so one is what a power cut costs, and a second of
    /// sound with all that delays it on its way stays below two.
    private var parts: Int {
        let length = step.milliseconds
        let fewest = max(1, Int((length + 999) / 1000))
        // Opus packets of 20 ms fill a segment exactly.
        return (fewest..<(fewest + 8)).first { length % (Int64($0) * 20) == 0 } ?? 1
    }

    var segment: Duration { step / parts }

    var chunkSegments: Int { max(1, Int(chunk / segment)) }

    var overlapSegments: Int { overlap > .zero ? parts : 0 }

    var segmentFrames: Int { Int(segment.milliseconds) * rate / 1000 }
}

/// Where sound goes: the queue, or what a test puts in its place.
package struct SoundSink: Sendable {
    package var newRunID: @Sendable () -> Int64
    package var begin: @Sendable (AudioRun) -> Void
    package var accept: @Sendable (Segment) -> Bool
    /// Why no sound is taken now; nil while it is.
    package var refusal: @Sendable () -> Failure?
    package var end: @Sendable (Int64) -> Void
    package var event: @Sendable (Event) -> Void

    package init(
        newRunID: @escaping @Sendable () -> Int64,
        begin: @escaping @Sendable (AudioRun) -> Void,
        accept: @escaping @Sendable (Segment) -> Bool,
        refusal: @escaping @Sendable () -> Failure? = { nil },
        end: @escaping @Sendable (Int64) -> Void,
        event: @escaping @Sendable (Event) -> Void
    ) {
        self.newRunID = newRunID
        self.begin = begin
        self.accept = accept
        self.refusal = refusal
        self.end = end
        self.event = event
    }

    package init(_ queue: Queue) {
        self.init(
            newRunID: { queue.newRunID() },
            begin: { queue.begin($0) },
            accept: { queue.accept($0) },
            refusal: { queue.soundRefusal },
            end: { queue.end(run: $0) },
            event: { queue.accept($0) }
        )
    }
}

/// Captures until it is told to stop, whatever the device does meanwhile.
///
/// Reading and encoding share the thread: encoding a tenth of a second takes about a millisecond, and the
/// device's own buffer holds two seconds. Nothing on this thread waits for the disk.
package final class AudioAdapter: Sendable {
    /// A device that delivers nothing for this long is broken.
    private static let stallLimit = Duration.seconds(5)
    private static let retrySteps: [Duration] =
        [.milliseconds(200), .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(30)]

    private let settings: AudioSettings
    private let sink: SoundSink
    private let board: Publisher<SourceReport>
    private let clock: any HostClock

    package init(
        settings: AudioSettings,
        sink: SoundSink,
        board: Publisher<SourceReport>,
        clock: any HostClock
    ) {
        self.settings = settings
        self.sink = sink
        self.board = board
        self.clock = clock
    }

    /// Blocks until `stop` is raised.
    package func run(until stop: StopSignal) {
        var meter = SourceMeter(device: settings.devices.first ?? "default", board: board)
        var retry = Retry(Self.retrySteps)
        var lastEnd: (stamp: Stamp, reason: String)?
        while !stop.isRaised {
            meter.loading()
            do {
                if let refusal = sink.refusal() { throw refusal }
                let pcm = try open()
                let capture = try Capture(settings: settings, device: pcm.device, sink: sink)
                do {
                    try record(pcm, capture, &meter, &lastEnd, until: stop)
                    try capture.end()
                    return
                } catch {
                    try? capture.end()
                    // An attempt without sound only prolongs the gap before it.
                    if let end = capture.endStamp ?? (lastEnd == nil ? clock.stamp() : nil) {
                        lastEnd = (end, "\(error)")
                    }
                    if capture.hasDelivered { retry.succeeded() }
                    throw error
                }
            } catch {
                meter.failed((error as? Failure) ?? Failure("\(meter.report.device): \(error)"))
            }
            guard !stop.isRaised, !stop.sleep(for: retry.next()) else { return }
            meter.restarted()
        }
    }

    /// The first device of the list that opens.
    private func open() throws -> PCM {
        var problems: [Failure] = []
        for device in settings.devices {
            do {
                return try PCM(device: device, rate: settings.rate)
            } catch {
                problems.append((error as? Failure) ?? Failure("\(device): \(error)"))
            }
        }
        throw Failure(
            problems.map(\.message).joined(separator: "; "),
            code: problems.compactMap(\.code).first
        )
    }

    private func record(
        _ pcm: borrowing PCM,
        _ capture: Capture,
        _ meter: inout SourceMeter,
        _ lastEnd: inout (stamp: Stamp, reason: String)?,
        until stop: StopSignal
    ) throws {
        var samples: [Int16] = []
        var heardAt = clock.now()
        meter.working("starting", device: pcm.device, now: heardAt)
        while !stop.isRaised {
            samples.removeAll(keepingCapacity: true)
            let isReady = try pcm.wait(milliseconds: 500)
            let count = isReady ? try pcm.read(into: &samples, limit: settings.rate / 10) : 0
            let now = clock.stamp()
            guard count > 0 else {
                guard now.boot - heardAt < Self.stallLimit else {
                    throw Failure(
                        "\(pcm.device): no sound for 5 s; unplug the microphone and plug it in again"
                    )
                }
                continue
            }
            heardAt = now.boot
            if capture.isFresh {
                // What was read, and what waits behind it, was captured before now.
                let behind = Double(count + pcm.available) / Double(settings.rate)
                capture.begin(at: now.advanced(by: .milliseconds(-Int64(behind * 1000))))
                reportGap(&lastEnd, capture, device: pcm.device)
            }
            for segment in try capture.take(samples[...]) {
                guard sink.accept(segment) else {
                    meter.drop()
                    capture.refused(segment)
                    throw sink.refusal()
                        ?? Failure(
                            "audio: the queue is too far behind the microphone; is the disk slow?"
                        )
                }
                meter.admit(now)
                meter.working(detail(segment, capture, pcm.device), now: now.boot)
            }
        }
    }

    /// An event for what was not recorded between two runs.
    private func reportGap(
        _ lastEnd: inout (stamp: Stamp, reason: String)?,
        _ capture: Capture,
        device: String
    ) {
        guard let (end, reason) = lastEnd, let start = capture.startStamp else { return }
        lastEnd = nil
        let lost = max(0, (start.boot - end.boot).milliseconds)
        // What is missing, in chunks as they would have been.
        let step = max(1, (settings.chunk - settings.overlap).milliseconds)
        let chunks = max(1, (lost + step - 1) / step)
        sink.event(
            Event(
                .gap,
                source: "audio",
                detail: [
                    ("lost_s", .number(Double(lost) / 1000)), ("from", .time(end.wall)),
                    ("to", .time(start.wall)), ("device", .text(device)), ("reason", .text(reason)),
                ],
                stamp: start,
                loss: Loss(.gap, .audio, records: chunks, from: end, to: start)
            )
        )
    }

    private func detail(_ segment: Segment, _ capture: Capture, _ device: String) -> String {
        guard capture.silentSegments * Int(settings.segment.milliseconds) < 5000 else {
            return "only digital silence from \(device): muted, or a dead microphone?"
        }
        let level = SoundLevel.decibels(segment.meanSquare).rounded()
        return "\(settings.rate / 1000) kHz mono, \(Int(level)) dBFS"
    }
}
