// Audio as it is stored: runs of unbroken capture, cut into short encoded segments.
import Glibc
package import Host

/// How a segment is encoded; the raw value is stored.
package enum AudioCodec: Int, Sendable, CaseIterable {
    case opus = 1
    case wav = 2
    case flac = 3
    case aac = 4

    /// `audio_format` on the wire: the container name that players know.
    package var format: String {
        switch self {
        case .opus: "ogg"
        case .wav: "wav"
        case .flac: "flac"
        case .aac: "aac"
        }
    }
}

/// An unbroken stretch of capture, from a (re)start to the next gap or stop.
package struct AudioRun: Sendable, Equatable {
    /// An id from `Queue.newRunID()`.
    package var id: Int64
    package var codec: AudioCodec
    /// Frames per second; one channel.
    package var rate: Int
    /// The stored form of a `CaptureDevice`.
    package var device: String
    /// Frames, at `rate`, that the decoder drops at the start of a segment's packets (Opus
    /// lookahead).
    package var preskip: Int
    /// Segments in a full chunk, and how many of them it shares with the next chunk.
    package var chunkSegments: Int
    package var overlapSegments: Int
    /// Chunks with a lower average level (dBFS) are counted and not stored.
    package var minimumLevel: Double?

    package init(
        id: Int64,
        codec: AudioCodec,
        rate: Int,
        device: String,
        preskip: Int = 0,
        chunkSegments: Int = 15,
        overlapSegments: Int = 1,
        minimumLevel: Double? = nil
    ) {
        self.id = id
        self.codec = codec
        self.rate = rate
        self.device = device
        self.preskip = preskip
        self.chunkSegments = chunkSegments
        self.overlapSegments = overlapSegments
        self.minimumLevel = minimumLevel
    }
}

/// The encoded audio of one overlap length (2 s), or less at the end of a run.
package struct Segment: Sendable, Equatable {
    package var run: Int64
    /// Its index in the run, from 0; set by `Queue.accept`, so that every lost segment leaves a
    /// gap.
    package var index: Int64 = 0
    /// Frames of audio it covers.
    package var frames: Int
    /// When its first frame was captured.
    package var start: Stamp
    /// Mean of the squared samples without their DC component, full scale = 1.
    package var meanSquare: Double
    /// The encoded audio.
    ///
    /// WAV: little-endian 16-bit samples. Opus: packets, each after its 16-bit little-endian
    /// length; the last one is also the next segment's first, because the decoder needs it for the
    /// last `preskip` frames of this one. FLAC: frames, each after its length, numbered within
    /// their run. AAC: ADTS frames.
    package var data: [UInt8]

    package init(run: Int64, frames: Int, start: Stamp, meanSquare: Double, data: [UInt8]) {
        self.run = run
        self.frames = frames
        self.start = start
        self.meanSquare = meanSquare
        self.data = data
    }
}

/// The device of a run: one text in the database, two members in a record.
package struct CaptureDevice: Sendable, Equatable {
    /// The PCM's name; contains no tab.
    package var name: String
    /// Frames per second of the device if below the record's rate; else nil.
    package var rate: Int?

    package init(name: String, rate: Int?) {
        (self.name, self.rate) = (name, rate)
    }

    /// Parses the text of a run.
    package init(stored: String) {
        let parts = stored.split(separator: "\t", maxSplits: 1)
        self.init(
            name: parts.first.map(String.init) ?? "",
            rate: parts.dropFirst().first.flatMap { Int($0) }
        )
    }

    /// The text of a run: the name, and the rate after a tab.
    package var stored: String { rate.map { "\(name)\t\($0)" } ?? name }
}

/// Audio levels.
package enum AudioLevel {
    /// The level of digital silence: below the step of 16-bit samples, and a number that JSON can
    /// hold.
    package static let floor = -120.0

    /// Converts a mean of squared samples (full scale 1) to dBFS: a full-scale square wave is 0 dB.
    package static func decibels(_ meanSquare: Double) -> Double {
        guard meanSquare > 1e-12 else { return floor }
        return 10 * log10(meanSquare)
    }
}

/// A chunk of audio: a record of the audio stream that refers to its segments.
package struct Chunk: Sendable, Equatable {
    package var codec: AudioCodec
    package var rate: Int
    package var device: String
    package var preskip: Int
    package var firstSegment: Int64
    package var segments: Int
    package var frames: Int
    package var overlapFrames: Int
    package var meanSquare: Double
    package var start: Stamp
    /// Length in ms by the device's clock, from its first frame to the end of its last; nil:
    /// unknown.
    package var span: Int64?

    package init(
        codec: AudioCodec,
        rate: Int,
        device: String,
        preskip: Int,
        firstSegment: Int64,
        segments: Int,
        frames: Int,
        overlapFrames: Int,
        meanSquare: Double,
        start: Stamp,
        span: Int64? = nil
    ) {
        self.codec = codec
        self.rate = rate
        self.device = device
        self.preskip = preskip
        self.firstSegment = firstSegment
        self.segments = segments
        self.frames = frames
        self.overlapFrames = overlapFrames
        self.meanSquare = meanSquare
        self.start = start
        self.span = span
    }

    /// The length of its audio in ms: frames over rate.
    package var duration: Int64 { Int64(frames) * 1000 / Int64(max(1, rate)) }
}

extension Stream {
    package static let audio = Stream(2, "audio")
}

extension Chunk {
    package static let kind = StreamKind(
        .audio,
        wire: "linux_alsa_audio",
        table: "chunks",
        shape: .sound,
        usualBytes: 65_536
    )
}
