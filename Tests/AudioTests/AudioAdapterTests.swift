// The whole source over the real libasound: file to segments, and devices that refuse.
import Configuration
import Foundation
import Host
import Queue
import Records
import SourceSupport
import StatusBoard
import Support
import Testing

@testable import Audio

@Suite struct AudioAdapterTests {
    init() throws {
        try #require(TestALSA.isReady)
    }

    @Test func run_wav_givesEverySampleOfTheDevice() throws {
        let sound = tone(frames: 32_000 * 16)
        try TestALSA.withDevice(sound) { device in
            let recorder = try Recorder(enough: 32, clock: clock)
            let board = Publisher<SourceReport>()
            run(device, codec: .wav, recorder, board)
            let all = recorder.all
            #expect(all.segments.prefix(32).flatMap(\.data) == bytes(sound))
            #expect(all.runs.count == 1)
            #expect(all.runs.first?.device == device)
            #expect(all.runs.first?.chunkSegments == 30)
            #expect(all.runs.first?.overlapSegments == 2)
            #expect(all.ended == [1])
            #expect(all.events.isEmpty)
            guard case .loaded(let report) = board.state else {
                Issue.record("the source is not loaded: \(board.state)")
                return
            }
            #expect(report.records == 32)
            #expect(report.detail.hasPrefix("16 kHz mono, -"))
        }
    }

    @Test func run_datesSegmentsByTheirFrames() throws {
        try TestALSA.withDevice(tone(frames: 32_000 * 4)) { device in
            let recorder = try Recorder(enough: 4, clock: clock)
            run(device, codec: .wav, recorder, Publisher())
            let starts = recorder.all.segments.map(\.start.boot.milliseconds)
            let first = try #require(starts.first)
            #expect(starts.prefix(4) == starts.prefix(4).sorted()[...])
            #expect(starts.prefix(4).last.map { $0 - first < 4000 } == true)
        }
    }

    @Test func opusRun_reportsLookahead() throws {
        try TestALSA.withDevice(tone(frames: 32_000 * 3)) { device in
            let recorder = try Recorder(enough: 2, clock: clock)
            run(device, codec: .opus, recorder, Publisher())
            #expect(recorder.all.runs.first?.preskip == 104)
            #expect(recorder.all.segments.prefix(2).map(\.frames) == [16_000, 16_000])
        }
    }

    @Test func run_reportsDigitalSilence_andKeepsRecording() throws {
        try TestALSA.withDevice([Int16](repeating: 0, count: 32_000 * 16)) { device in
            let recorder = try Recorder(enough: 20, clock: clock)
            let board = Publisher<SourceReport>()
            run(device, codec: .wav, recorder, board)
            #expect(recorder.all.segments.count >= 20)
            #expect(
                board.state.value?.detail
                    == "no signal from \(device): muted, or a dead microphone?"
            )
        }
    }

    @Test func run_endsAtRefusedSegment_andReportsGap() throws {
        let sound = tone(frames: 32_000 * 4)
        try TestALSA.withDevice(sound) { device in
            let recorder = try Recorder(
                enough: 4,
                clock: clock,
                refuses: { number, _ in number == 2 }
            )
            let board = Publisher<SourceReport>()
            run(device, codec: .wav, recorder, board)
            let all = recorder.all
            #expect(all.runs.map(\.id) == [1, 2])
            #expect(all.ended == [1, 2])
            let first = all.segments.filter { $0.run == 1 }
            #expect(first.flatMap(\.data) == bytes(sound.prefix(32_000)))
            let gap = try #require(all.events.first)
            #expect(all.events.count == 1)
            #expect(gap.kind == .gap)
            #expect(gap.source == "audio")
            #expect(
                gap.detail.map(\.key) == [
                    "lost_s", "lost_frames", "from", "to", "device", "reason",
                ]
            )
            let end = try #require(all.refused.last).start
            #expect(gap.detail.contains { $0.key == "from" && $0.value == .time(end.wall) })
            #expect(board.state.value?.restarts == 1)
            #expect(board.state.value?.dropped == 1)
        }
    }

    @Test func endThatTheQueueDoesNotTake_isCounted() throws {
        try TestALSA.withDevice(tone(frames: 16_000 * 8)) { device in
            // The rest after the stop is shorter than a segment.
            let recorder = try Recorder(enough: 3, clock: clock, refuses: { $1.frames < 16_000 })
            let board = Publisher<SourceReport>()
            run(device, codec: .wav, recorder, board)
            #expect(board.state.value?.dropped == 1)
        }
    }

    /// The reported gap then begins where the queue's audio ends.
    @Test func endThatTheQueueDoesNotTake_isNoPartOfTheRun() throws {
        let recorder = try Recorder(enough: .max, refuses: { number, _ in number == 1 })
        var settings = AudioSettings { $0.devices = ["mic"] }
        settings.codec = .wav
        let capture = try Capture(
            settings: settings,
            device: "mic",
            deviceRate: 16_000,
            sink: recorder.sink
        )
        let start = Stamp(boot: BootInstant(nanoseconds: 5_000_000_000), wall: now)
        capture.observe(Position(captured: 20_000, age: .zero, now: start))
        _ = capture.begin()
        for segment in try capture.receive(tone(frames: 20_000)[...]) {
            _ = recorder.sink.accept(segment)
        }
        try capture.end()
        #expect(capture.refusedTail == 1)
        #expect(recorder.all.segments.map(\.frames) == [16_000])
        #expect(capture.endStamp == recorder.all.refused.last?.start)
        #expect(recorder.all.ended == [1])
    }

    @Test func run_fallsBackToTheNextDevice() throws {
        try TestALSA.withDevice(tone(frames: 64_000)) { device in
            let recorder = try Recorder(enough: 1, clock: clock)
            run("waypost_missing", device, codec: .wav, recorder, Publisher())
            #expect(recorder.all.runs.first?.device == device)
        }
    }

    @Test func open_missingDevice_saysWhatToDo() {
        #expect(
            throws: Failure(
                "waypost_missing: no such capture device; plug it in, or choose one that `waypost devices` lists"
            )
        ) { _ = try PCM(device: "waypost_missing", rate: 16_000).rate }
        #expect(
            throws: Failure(
                "waypost_unheard_of: no such capture device; plug it in, or choose one that `waypost devices` lists"
            )
        ) { _ = try PCM(device: "waypost_unheard_of", rate: 16_000).rate }
    }

    private let now = WallTime(milliseconds: 1_795_235_407_000)
    private let clock = ManualClock(
        Stamp(
            boot: BootInstant(nanoseconds: 1_000_000_000_000),
            wall: WallTime(milliseconds: 1_795_235_407_000)
        )
    )

    private func run(
        _ devices: String...,
        codec: AudioCodec,
        _ recorder: Recorder,
        _ board: Publisher<SourceReport>
    ) {
        var settings = AudioSettings { $0.devices = devices }
        settings.codec = codec
        AudioAdapter(
            settings: settings,
            sink: recorder.sink,
            board: board,
            clock: clock
        ).run(until: recorder.stop)
    }

    @Test func restartedSource_reportsItsGap() throws {
        try TestALSA.withDevice(tone(frames: 32_000 * 2)) { device in
            let end = clock.stamp().advanced(by: .seconds(-60))
            let recorder = try Recorder(enough: 2, endOfAudio: end, clock: clock)
            run(device, codec: .wav, recorder, Publisher())
            let gap = try #require(recorder.all.events.first)
            #expect(gap.kind == .gap)
            #expect(gap.detail.contains { $0.key == "from" && $0.value == .time(end.wall) })
            let reason = EventValue.text("the source was restarted")
            #expect(gap.detail.contains { $0.key == "reason" && $0.value == reason })
        }
    }

    /// A device without a clock gets the time while its microphone is unplugged: forward from 1970,
    /// or back.
    @Test(arguments: [0, 1_895_000_000_000]) func gapOverAStepOfTheClock_isAsLongAsItWas(
        wall: Int64
    ) throws {
        let end = Stamp(
            boot: BootInstant(nanoseconds: 20_000_000_000),
            wall: WallTime(milliseconds: wall)
        )
        let start = Stamp(
            boot: BootInstant(nanoseconds: 50_000_000_000),
            wall: WallTime(milliseconds: 1_795_235_407_000)
        )
        let gap = AudioSettings().gap(from: end, to: start, device: "mic", reason: "is gone")
        let times = gap.detail.filter { ["from", "to"].contains($0.key) }.map(\.value)
        #expect(times == [.time(start.wall + .seconds(-30)), .time(start.wall)])
    }
}
