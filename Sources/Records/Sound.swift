// Sound as it is stored: runs of unbroken capture, cut into short encoded segments.
import Glibc
package import Host

/// How a segment is encoded; the raw value is stored.
package enum AudioCodec: Int, Sendable, CaseIterable {
    case opus = 1
    case wav = 2
    case flac = 3
    case aac = 4

    /// `audio_format` on the wire: the container that players know it by.
    package var format: String {
        switch self {
        case .opus: "ogg"
        case .wav: "wav"
        case .flac: "flac"
        case .aac: "aac"
        }
    }
}

/// An unbroken stretch of capture: from (re)start to the next gap or stop.
package struct AudioRun: Sendable, Equatable {
    /// Made by `Queue.newRunID()`.
    package var id: Int64
    package var codec: AudioCodec
    /// Frames a second; one channel.
    package var rate: Int
    /// A `CaptureDevice` as it is stored.
    package var device: String
    /// Frames that the decoder must drop at the start of a segment's packets (Opus lookahead), at `rate`.
    package var preskip: Int
    /// Segments in a full chunk, and how many of them the next chunk shares.
    package var chunkSegments: Int
    package var overlapSegments: Int
    /// Chunks quieter than this on average (dBFS) are counted and not kept.
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

/// The encoded sound of one overlap length (2 s), or less at the end of a run.
package struct Segment: Sendable, Equatable {
    package var run: Int64
    /// Its place in the run, from 0: set by `Queue.accept`, so that a hole shows whoever made it.
    package var index: Int64 = 0
    /// Frames of sound it stands for.
    package var frames: Int
    /// When its first frame was captured.
    package var start: Stamp
    /// Mean of the squared samples without their DC part, full scale = 1.
    package var meanSquare: Double
    /// The encoded sound.
    ///
    /// WAV: little-endian 16-bit samples. Opus: packets, each after its length as a 16-bit little-endian
    /// number; the last one is also the next segment's first: the decoder needs it for the last `preskip`
    /// frames of this one. FLAC: frames, each after its length, numbered by their run. AAC: ADTS frames.
    package var data: [UInt8]

    package init(run: Int64, frames: Int, start: Stamp, meanSquare: Double, data: [UInt8]) {
        self.run = run
        self.frames = frames
        self.start = start
        self.meanSquare = meanSquare
        self.data = data
    }
}

/// The device of a run: one text in the database, two members of a record.
package struct CaptureDevice: Sendable, Equatable {
    /// The PCM's name, which holds no tab.
    package var name: String
    /// Frames per second of the device where it delivers fewer than the record has; nil where it does not.
    package var rate: Int?

    package init(name: String, rate: Int?) {
        (self.name, self.rate) = (name, rate)
    }

    /// Reads a text of a run.
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

/// Levels of sound.
package enum SoundLevel {
    /// What digital silence is called: below the step of 16-bit samples, and a number JSON can hold.
    package static let floor = -120.0

    /// A mean of squared samples (full scale 1) in dBFS: a full-scale square wave is 0 dB.
    package static func decibels(_ meanSquare: Double) -> Double {
        guard meanSquare > 1e-12 else { return floor }
        return 10 * log10(meanSquare)
    }
}

/// A chunk of sound: a record of the audio stream, by reference to its segments.
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
    /// From its first frame to the end of its last in ms, as the board's clock measured it; nil: not known.
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

    /// The length of its sound in ms: frames over rate.
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
