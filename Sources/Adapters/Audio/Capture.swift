// One run of capture: samples in, dated segments out.
internal import Host
internal import Store

/// The run under way; lives on the source's thread.
final class Capture {
    private let settings: AudioSettings
    private let device: String
    private let sink: SoundSink
    private let encoder: any SegmentEncoder
    private var run: Int64 = 0
    /// Frames given out in segments, and frames taken in.
    private var framesOut = 0
    private var framesIn = 0
    private(set) var startStamp: Stamp?
    private var refusedAt: Stamp?
    /// Segments of nothing but zeros in a row.
    private(set) var silentSegments = 0

    init(settings: AudioSettings, device: String, sink: SoundSink) throws {
        self.settings = settings
        self.device = device
        self.sink = sink
        encoder = try settings.newEncoder()
    }

    /// Nothing has been captured yet.
    var isFresh: Bool { startStamp == nil }

    /// A whole segment came of it: the device works.
    var hasDelivered: Bool { framesOut > 0 }

    /// When the last frame was captured.
    var endStamp: Stamp? { refusedAt ?? startStamp.map { stamp(of: framesIn, from: $0) } }

    /// The queue did not take this segment: the run ends before it, for nothing may follow a hole.
    func refused(_ segment: Segment) { refusedAt = segment.start }

    /// Begins the run: its first frame was captured at `start`.
    func begin(at start: Stamp) {
        startStamp = start
        run = sink.newRunID()
        sink.begin(
            AudioRun(
                id: run,
                codec: settings.codec,
                rate: settings.rate,
                device: device,
                preskip: encoder.preskip,
                chunkSegments: settings.chunkSegments,
                overlapSegments: settings.overlapSegments,
                minimumLevel: settings.minimumLevel
            )
        )
    }

    /// The segments that these samples complete.
    func take(_ samples: ArraySlice<Int16>) throws -> [Segment] {
        framesIn += samples.count
        return try encoder.encode(samples).compactMap(dated)
    }

    /// Ends the run: what is left becomes a short segment.
    func end() throws {
        guard !isFresh else { return }
        defer { sink.end(run) }
        guard refusedAt == nil else { return }
        for segment in try encoder.finish().compactMap(dated) { _ = sink.accept(segment) }
    }

    private func dated(_ encoded: EncodedSegment) -> Segment? {
        guard let startStamp else { return nil }
        silentSegments = encoded.meanSquare == 0 ? silentSegments + 1 : 0
        defer { framesOut += encoded.frames }
        return Segment(
            run: run,
            frames: encoded.frames,
            start: stamp(of: framesOut, from: startStamp),
            meanSquare: encoded.meanSquare,
            data: encoded.data
        )
    }

    private func stamp(of frame: Int, from start: Stamp) -> Stamp {
        start.advanced(by: .milliseconds(Int64(frame) * 1000 / Int64(settings.rate)))
    }
}
