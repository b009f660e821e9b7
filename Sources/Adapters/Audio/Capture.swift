// Turns the samples of one run, an unbroken recording, into dated and encoded segments.
import Host
import Records

/// One run of one device, from its first sample to a gap or the stop.
///
/// `AudioAdapter` reads the device and passes the samples on. Used by the source's thread only.
final class Capture {
    private let settings: AudioSettings
    private let device: CaptureDevice
    private let sink: any RecordSink
    private let encoder: any SegmentEncoder
    private var run: Int64 = 0
    /// Dates the device's frames; `scale` of them make one frame at `settings.rate`.
    private var clock: DeviceClock
    private let scale: Double
    /// Frames in finished segments, and frames received.
    private var framesOut = 0
    private var framesIn = 0
    /// Frames before the window opened, which are not recorded.
    private var skipped = 0
    /// The window has closed.
    private(set) var isOver = false
    private var newest: Position?
    private var newestStart: Stamp?
    private var refusedAt: Stamp?
    /// For programs that listen: samples of segments that are not finished, and the first's number.
    private var live: (frame: Int, samples: [Int16]) = (0, [])
    /// The newest chunk's first frame and its capture time.
    private var chunk: (frame: Int, start: Stamp)?
    private(set) var startStamp: Stamp?
    private(set) var segments = 0
    /// Final segments that the queue did not accept.
    private(set) var refusedTail = 0

    /// `deviceRate`: frames per second of the device.
    init(
        settings: AudioSettings,
        device: String,
        deviceRate: Int,
        sink: any RecordSink
    ) throws {
        self.settings = settings
        self.device = CaptureDevice(
            name: device,
            rate: deviceRate < settings.rate ? deviceRate : nil
        )
        self.sink = sink
        clock = DeviceClock(rate: deviceRate)
        scale = Double(deviceRate) / Double(settings.rate)
        encoder = try settings.newEncoder()
    }

    /// The run has not begun.
    var isFresh: Bool { startStamp == nil }

    /// At least one segment was finished: the device works.
    var hasDelivered: Bool { segments > 0 }

    /// When the recording ended, or its newest frame was captured; nil before the run has begun.
    var endStamp: Stamp? { refusedAt ?? (isFresh ? nil : stamp(of: framesIn)) }

    /// The number of frames to read next, so that a segment is finished without delay.
    ///
    /// Encoders and filters hold `aheadFrames` back, so each read ends that far beyond the end of a
    /// segment.
    var missing: Int {
        let segment = settings.segmentFrames
        return segment - (framesIn + segment - settings.aheadFrames % segment) % segment
    }

    /// The current chunk has just been completed.
    var isAtChunkEnd: Bool {
        let beyond = segments - settings.chunkSegments
        return beyond >= 0 && beyond % settings.chunkStep == 0
    }

    /// Ends the run before this segment, which the queue rejected: no segment may follow a gap.
    func refused(_ segment: Segment) { refusedAt = segment.start }

    /// Updates the clock with the device's position.
    func observe(_ position: Position) {
        newest = position
        clock.observe(captured: position.captured, at: position.steady - position.age)
    }

    /// Returns the samples that were captured in the window; sets `isOver` at its end.
    func clip(_ samples: [Int16], to window: RecordingWindow) -> ArraySlice<Int16> {
        // Samples were dropped: none may follow them in this run.
        guard !isOver else { return [] }
        var samples = samples[...]
        if isFresh, let opens = window.opens {
            // Without a position the device has not delivered anything that can be dated.
            let early = frames(until: opens).map { max(0, min($0, samples.count)) } ?? samples.count
            skipped += early
            samples = samples.dropFirst(early)
        }
        guard let closes = window.closes, let left = frames(until: closes), left < samples.count
        else {
            return samples
        }
        isOver = true
        return samples.prefix(max(0, left))
    }

    /// Returns the number of frames from the next one to a point in time; negative if that is past.
    private func frames(until moment: BootInstant) -> Int? {
        stamp(of: framesIn).map {
            Int(((moment - $0.boot).inSeconds * Double(settings.rate)).rounded(.up))
        }
    }

    /// Begins the run with the first samples; true when it did.
    func begin() -> Bool {
        guard isFresh, let start = stamp(of: 0) else { return false }
        startStamp = start
        run = sink.newRunID()
        sink.begin(
            AudioRun(
                id: run,
                codec: settings.codec,
                rate: settings.rate,
                device: device.stored,
                preskip: encoder.preskip,
                chunkSegments: settings.chunkSegments,
                overlapSegments: settings.overlapSegments,
                minimumLevel: settings.minimumLevel
            )
        )
        return true
    }

    /// Encodes samples; returns the segments that they complete.
    func receive(_ samples: ArraySlice<Int16>) throws -> [Segment] {
        if sink.soundTap?.isOpen == true {
            if live.samples.isEmpty { live.frame = framesIn }
            live.samples += samples
        } else if !live.samples.isEmpty {
            live.samples = []
        }
        framesIn += samples.count
        return try encoder.encode(samples).compactMap(dated)
    }

    /// Ends the run; the remaining samples become a short segment.
    func end() throws {
        guard !isFresh else { return }
        defer { sink.end(run: run) }
        guard refusedAt == nil else { return }
        for segment in try encoder.finish().compactMap(dated) {
            // No segment may follow a gap.
            if refusedAt == nil, sink.accept(segment) { continue }
            if refusedAt == nil { refused(segment) }
            refusedTail += 1
        }
        invariant(framesOut == framesIn, "each frame of a run is in a segment")
    }

    private func dated(_ encoded: EncodedSegment) -> Segment? {
        guard var start = stamp(of: framesOut), let now = newest?.now else { return nil }
        // No audio ends in the future: more came than time has passed.
        let length = Duration.seconds(Double(encoded.frames) / Double(settings.rate))
        if start.boot + length > now.boot { start = now.advanced(by: .zero - length) }
        // A corrected estimate must not move time backwards.
        if let newestStart, start.boot < newestStart.boot { start = newestStart }
        newestStart = start
        if segments % settings.chunkStep == 0 { chunk = (framesOut, start) }
        passLive(to: framesOut + encoded.frames)
        framesOut += encoded.frames
        invariant(framesOut <= framesIn, "an encoder gives no more frames than it got")
        segments += 1
        return Segment(
            run: run,
            frames: encoded.frames,
            start: start,
            meanSquare: encoded.meanSquare,
            data: encoded.data
        )
    }

    /// Gives the samples of a finished segment to programs that listen; never waits for them.
    private func passLive(to end: Int) {
        let count = min(end - live.frame, live.samples.count)
        guard count > 0, let chunk else { return }
        sink.soundTap?.pass(
            AudioBlock(
                run: run,
                frame: Int64(live.frame),
                rate: settings.rate,
                chunkFrame: Int64(chunk.frame),
                chunkStart: chunk.start,
                samples: Array(live.samples[..<count])
            )
        )
        live.samples.removeFirst(count)
        live.frame += count
    }

    /// Returns both clocks at the capture of a frame; the wall clock as it is set now.
    private func stamp(of frame: Int) -> Stamp? {
        guard let newest, let time = clock.time(of: Double(frame + skipped) * scale)
        else { return nil }
        return newest.now.advanced(by: min(.zero, time - newest.steady))
    }
}
