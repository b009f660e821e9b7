// What the sound source is told, and what follows from it.
import Host
package import Records

/// What a microphone without any signal means.
package enum SilencePolicy: String, Sendable, CaseIterable {
    case report
    /// It is muted on purpose.
    case ok
}

/// What the sound source needs to know (`[audio]`).
package struct AudioSettings: Sendable, Equatable {
    package var isEnabled = true
    /// ALSA PCM names in order of preference.
    package var devices = ["default"]
    /// Counted from 1; nil for the first that has a signal.
    package var channel: Int?
    /// Frames a second.
    package var rate = 16_000
    package var chunk = Duration.seconds(30)
    package var overlap = Duration.seconds(2)
    package var codec = AudioCodec.opus
    /// Bits a second, for Opus and AAC.
    package var bitrate = 24_000
    /// Chunks quieter than this (dBFS) are not kept.
    package var minimumLevel: Double?
    package var silence = SilencePolicy.report

    package init() {}

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

    /// Frames beyond a segment that an encoder and the filter must have before it is out, at most.
    var aheadFrames: Int {
        let held =
            switch codec {
            case .wav: 0
            case .opus: rate / 50
            // A block of 4608 that waits for the next one.
            case .flac: 2 * 4608
            // Half a frame of rounding and three of delay.
            case .aac: 4 * 1024
            }
        return held + rate / 50
    }

    var segmentFrames: Int { Int(segment.milliseconds) * rate / 1000 }
}

extension AudioSettings {
    /// The event for sound that was not recorded, with what is missing in chunks as they would have been.
    func gap(from end: Stamp, to start: Stamp, device: String, reason: String) -> Event {
        let lost = max(.zero, start.boot - end.boot)
        let step = max(1, (chunk - overlap).milliseconds)
        let chunks = max(1, (lost.milliseconds + step - 1) / step)
        let frames = Int64((lost.inSeconds * Double(rate)).rounded())
        // A clock that was set meanwhile would make seconds decades.
        return Event(
            .gap,
            source: "audio",
            detail: [
                ("lost_s", .number(Double(lost.milliseconds) / 1000)),
                ("lost_frames", .integer(frames)), ("from", .time(end.wall(by: start))),
                ("to", .time(start.wall)), ("device", .text(device)), ("reason", .text(reason)),
            ],
            stamp: start,
            loss: Loss(.gap, .audio, records: chunks, from: end, to: start)
        )
    }
}
