// The settings of the audio source and the lengths derived from them.
import Host
package import Records

/// How to treat a microphone without a signal.
package enum SilencePolicy: String, Sendable, CaseIterable {
    case report
    /// The microphone is muted on purpose.
    case ok
}

/// The settings of the audio source (`[audio]`).
package struct AudioSettings: Sendable, Equatable {
    package var isEnabled = true
    /// ALSA PCM names in order of preference.
    package var devices = ["default"]
    /// Counted from 1; nil for the first that has a signal.
    package var channel: Int?
    /// Frames per second.
    package var rate = 16_000
    package var chunk = Duration.seconds(30)
    package var overlap = Duration.seconds(2)
    package var codec = AudioCodec.opus
    /// Bits per second, for Opus and AAC.
    package var bitrate = 24_000
    /// Chunks quieter than this (dBFS) are not stored.
    package var minimumLevel: Double?
    package var silence = SilencePolicy.report

    package init() {}

    /// The length that is divided into segments: the overlap, or 2 s if it is zero.
    ///
    /// Chunks overlap by whole segments.
    private var step: Duration { overlap > .zero ? overlap : .seconds(2) }

    /// Segments per overlap.
    ///
    /// Each segment is stored when it ends. A power cut loses at most one: less than 2 s of audio,
    /// including all delays.
    private var parts: Int {
        let length = step.milliseconds
        let fewest = max(1, Int((length + 999) / 1000))
        // Opus packets of 20 ms fill a segment exactly.
        return (fewest..<(fewest + 8)).first { length % (Int64($0) * 20) == 0 } ?? 1
    }

    var segment: Duration { step / parts }

    var chunkSegments: Int { max(1, Int(chunk / segment)) }

    var overlapSegments: Int { overlap > .zero ? parts : 0 }

    /// Segments from the start of a chunk to the start of the next one.
    var chunkStep: Int { max(1, chunkSegments - overlapSegments) }

    /// The maximum number of frames that encoder and filter need beyond a segment to complete it.
    var aheadFrames: Int {
        let held =
            switch codec {
            case .wav: 0
            case .opus: rate / 50
            // FLAC returns a block only after the next one: two blocks of 4608 frames.
            case .flac: 2 * 4608
            // An AAC frame has 1024 samples: up to half a frame for rounding, three frames for the
            // encoder's delay.
            case .aac: 4 * 1024
            }
        return held + rate / 50
    }

    var segmentFrames: Int { Int(segment.milliseconds) * rate / 1000 }
}

extension AudioSettings {
    /// Returns the event for audio that was not recorded; counts the loss in chunks.
    func gap(from end: Stamp, to start: Stamp, device: String, reason: String) -> Event {
        // Audio of a device that was too fast may have been dated back to before its start.
        let end = end.boot > start.boot ? start : end
        let lost = start.boot - end.boot
        let step = max(1, (chunk - overlap).milliseconds)
        let chunks = max(1, (lost.milliseconds + step - 1) / step)
        let frames = Int64((lost.inSeconds * Double(rate)).rounded())
        // Converts `end` with the clock at `start`: if the clock was set in between, the clock at
        // `end` would be decades off.
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
