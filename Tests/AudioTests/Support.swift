// Sound to test with, a place for what comes out, and an ALSA configuration that plays files.
import Foundation
import Host
import Queue
import Records
import SourceSupport
import Support
import Synchronization

import Audio

/// A voice-like tone of changing pitch and loudness: no two stretches of it are alike.
func tone(frames: Int) -> [Int16] {
    var phase = 0.0
    return (0..<frames).map { frame in
        let time = Double(frame) / 16_000
        phase += 2 * Double.pi * (180 + 60 * sin(time * 1.7) + 25 * sin(time * 5.3)) / 16_000
        let loudness = 0.55 + 0.4 * sin(time * 7.1)
        return Int16(9000 * loudness * (sin(phase) + 0.5 * sin(2 * phase) + 0.25 * sin(3 * phase)))
    }
}

func bytes(_ samples: some Sequence<Int16>) -> [UInt8] {
    samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
}

/// The sink of an adapter; raises `stop` once it has enough segments.
final class Recorder: Sendable {
    let stop: StopSignal
    let sink: RecordingSink
    var all: RecordingSink.Content { sink.all }

    /// A second passes on `clock` with each second of audio; `refuses` gets the number of a segment, counted from 0, and the segment.
    init(
        enough: Int,
        endOfAudio: Stamp? = nil,
        clock: ManualClock? = nil,
        refuses: @escaping @Sendable (Int, Segment) -> Bool = { _, _ in false }
    ) throws {
        let stop = try StopSignal()
        let counts = Locked((offered: 0, kept: 0))
        self.stop = stop
        sink = RecordingSink(
            endOfAudio: endOfAudio,
            segment: { segment in
                clock?.advance(by: .seconds(Double(segment.frames) / 16_000))
                let number = counts.update { counts in
                    counts.offered += 1
                    return counts.offered - 1
                }
                if refuses(number, segment) { return false }
                let kept = counts.update { counts in
                    counts.kept += 1
                    return counts.kept
                }
                if kept >= enough { stop.raise() }
                return true
            }
        )
    }
}

/// PCMs for tests through the real libasound: `waypost_file:PATH` captures a raw file as fast as it is read.
enum TestALSA {
    /// Set before the first call of libasound, which reads it then.
    static let isReady: Bool = {
        let path = NSTemporaryDirectory() + "waypost-alsa-\(getpid()).conf"
        let text = """
            pcm.null { type null }
            pcm.waypost_file {
                @args [ PATH ]
                @args.PATH { type string }
                type file
                slave.pcm { type null }
                file /dev/null
                infile $PATH
                format raw
            }
            pcm.waypost_missing { type hw card 31 }
            pcm.hw {
                @args [ CARD DEV ]
                @args.CARD { type string }
                @args.DEV { type integer default 0 }
                type null
            }
            pcm_type.waypost_mic { lib "\(Microphone.library)" }
            pcm.waypost_mic {
                @args [ CONTROL RATES FORMATS CHANNELS TONE FILE ]
                @args.CONTROL { type string }
                @args.RATES { type string default "16000" }
                @args.FORMATS { type string default "S16_LE" }
                @args.CHANNELS { type integer default 1 }
                @args.TONE { type integer default 0 }
                @args.FILE { type string default "" }
                type waypost_mic
                control $CONTROL
                rates $RATES
                formats $FORMATS
                channels $CHANNELS
                tone $TONE
                file $FILE
            }
            pcm.waypost_plug {
                @args [ CONTROL RATES TONE ]
                @args.CONTROL { type string }
                @args.RATES { type string }
                @args.TONE { type integer default 0 }
                type plug
                slave.pcm {
                    type waypost_mic
                    control $CONTROL
                    rates $RATES
                    tone $TONE
                }
            }
            """
        guard Microphone.isBuilt,
            (try? text.write(toFile: path, atomically: true, encoding: .utf8)) != nil
        else {
            return false
        }
        return setenv("ALSA_CONFIG_PATH", path, 1) == 0
    }()

    /// Calls `body` with a PCM that captures `samples` as fast as they are read.
    ///
    /// A source needs a `Recorder` with a clock, which goes by what was recorded.
    static func withDevice(_ samples: [Int16], _ body: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "waypost-\(UUID().uuidString).raw"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(bytes(samples)).write(to: URL(fileURLWithPath: path))
        let microphone = try Microphone()
        microphone.become(.pulled)
        try body(microphone.device(file: path))
    }
}
