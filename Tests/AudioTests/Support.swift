// Sound to test with, a place for what comes out, and an ALSA configuration that plays files.
import Foundation
import Host
import Queue
import Records
import Synchronization

@testable import Audio

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

/// Stores what the adapter hands over; raises `stop` once it has enough segments.
final class Recorder: Sendable {
    struct Content {
        var runs: [AudioRun] = []
        var segments: [Segment] = []
        var offered = 0
        var refused: Segment?
        var ended: [Int64] = []
        var events: [Event] = []
        /// Losses without an event.
        var losses: [Loss] = []
    }

    private let content = Mutex(Content())
    let stop: StopSignal
    private let enough: Int

    /// The segment, counted from 0, that is refused.
    private let refusing: Int?

    init(enough: Int, refusing: Int? = nil) throws {
        self.refusing = refusing
        stop = try StopSignal()
        self.enough = enough
    }

    var all: Content { content.withLock { $0 } }

    var sink: SoundSink {
        var sink = SoundSink(
            newRunID: { self.content.withLock { Int64($0.runs.count + 1) } },
            begin: { run in self.content.withLock { $0.runs.append(run) } },
            accept: { segment in
                self.content.withLock { content in
                    content.offered += 1
                    guard content.offered - 1 != self.refusing else {
                        content.refused = segment
                        return false
                    }
                    content.segments.append(segment)
                    if content.segments.count >= self.enough { self.stop.raise() }
                    return true
                }
            },
            end: { run in self.content.withLock { $0.ended.append(run) } },
            event: { event in self.content.withLock { $0.events.append(event) } }
        )
        sink.lost = { loss in self.content.withLock { $0.losses.append(loss) } }
        return sink
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
                @args [ CONTROL RATES FORMATS CHANNELS TONE ]
                @args.CONTROL { type string }
                @args.RATES { type string default "16000" }
                @args.FORMATS { type string default "S16_LE" }
                @args.CHANNELS { type integer default 1 }
                @args.TONE { type integer default 0 }
                type waypost_mic
                control $CONTROL
                rates $RATES
                formats $FORMATS
                channels $CHANNELS
                tone $TONE
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

    /// Calls `body` with a PCM that captures `samples`.
    static func withDevice(_ samples: [Int16], _ body: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "waypost-\(UUID().uuidString).raw"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(bytes(samples)).write(to: URL(fileURLWithPath: path))
        try body("waypost_file:\(path)")
    }
}
