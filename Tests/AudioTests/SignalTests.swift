// A microphone judged by its samples: dead, clipping, too slow; and a level without DC.
import Configuration
import Foundation
import Host
import JSON
import Queue
import Records
import SourceSupport
import StatusBoard
import Support
import Testing

@testable import Audio

@Suite struct SignalTests {
    init() throws {
        try #require(TestALSA.isReady)
    }

    private func minutes(_ count: Int, of samples: [Int16]) -> [Int16] {
        (0..<(count * 60 * 16_000 / samples.count)).flatMap { _ in samples }
    }

    /// Where the source stands once it has recorded `seconds` of these samples.
    private func state(
        _ samples: [Int16],
        seconds: Int,
        silence: SilencePolicy = .report
    ) throws -> BoardState<SourceReport> {
        var state = BoardState<SourceReport>.unknown
        try TestALSA.withDevice(samples) { device in
            var settings = AudioSettings { $0.devices = [device] }
            (settings.codec, settings.silence) = (.wav, silence)
            let start = Stamp(
                boot: BootInstant(nanoseconds: 1_000_000_000_000),
                wall: WallTime(milliseconds: 1_795_235_407_000)
            )
            let (clock, board) = (ManualClock(start), Publisher<SourceReport>())
            let recorder = try Recorder(enough: seconds, clock: clock)
            AudioAdapter(
                settings: settings,
                sink: recorder.sink,
                board: board,
                clock: clock
            ).run(until: recorder.stop)
            state = board.state
        }
        return state
    }

    /// Zeros, and a constant -12 dBFS: both are recorded, and neither is healthy.
    @Test(arguments: [0, 8192] as [Int16])
    func aDeadMicrophone_isAnErrorAfterFiveMinutes(value: Int16) throws {
        let still = [Int16](repeating: value, count: 16_000)
        guard case .error(let failure, _) = try state(minutes(6, of: still), seconds: 330) else {
            Issue.record("a dead microphone is said to work")
            return
        }
        #expect(failure.message.contains("no signal for 5 minutes"))
        #expect(failure.message.contains("audio.silence"))
        guard case .loaded(let report) = try state(minutes(1, of: still), seconds: 30) else {
            Issue.record("half a minute of silence is an error")
            return
        }
        #expect(report.detail.hasPrefix("no signal from"))
    }

    @Test func aMicrophoneThatIsMutedOnPurpose_isFine() throws {
        let still = minutes(6, of: [Int16](repeating: 0, count: 16_000))
        guard case .loaded(let report) = try state(still, seconds: 330, silence: .ok) else {
            Issue.record("audio.silence = ok is not heeded")
            return
        }
        #expect(report.restarts == 0)
        #expect(report.concern == nil)
    }

    /// A step of 16 bits up and down is a signal, and so is a sound after five minutes of none.
    @Test func aQuietMicrophone_isFine() throws {
        let quiet = (0..<16_000).map { Int16($0 / 40 % 2) }
        guard case .loaded = try state(minutes(6, of: quiet), seconds: 330) else {
            Issue.record("a quiet microphone is said to be dead")
            return
        }
        let dead = minutes(6, of: [Int16](repeating: 5, count: 16_000))
        guard case .loaded = try state(dead + minutes(1, of: quiet), seconds: 380) else {
            Issue.record("a microphone that is back is said to be dead")
            return
        }
    }

    /// Resampled to 16 kHz and rounded, its own noise is gone: it is judged by what the device gave.
    @Test func aQuietMicrophoneThatIsResampled_isNotStartedAgain() throws {
        let (microphone, recorder) = (try Microphone(), try Recorder(enough: 6))
        let board = Publisher<SourceReport>()
        microphone.become(.quiet)
        var settings = AudioSettings { $0.devices = [microphone.device(rates: "48000")] }
        settings.codec = .wav
        AudioAdapter(
            settings: settings,
            sink: recorder.sink,
            board: board,
            clock: SystemClock()
        ).run(until: recorder.stop)
        let report = try #require(board.state.value)
        #expect(report.restarts == 0)
        #expect(report.detail.hasPrefix("16 kHz mono"), "\(report.detail)")
    }

    @Test func clipping_isReportedAfterAMinute() throws {
        // 2 % of a sawtooth stand at the ends of the scale.
        let loud = (0..<16_000).map { $0 % 50 == 0 ? Int16.max : Int16($0 % 50 * 600) }
        #expect(
            try state(minutes(2, of: loud), seconds: 70).value?.concern?
                .contains("2.0 % of the samples are clipped") == true
        )
        let fine = loud.enumerated().map { $0.offset % 500 == 0 ? $0.element : $0.element / 2 }
        #expect(try state(minutes(2, of: fine), seconds: 70).value?.concern == nil)
    }

    @Test(arguments: AudioCodec.allCases)
    func level_isThatOfTheSoundWithoutDC(codec: AudioCodec) throws {
        func levels(_ offset: Int16) throws -> [Double] {
            var settings = AudioSettings { $0.devices = ["test"] }
            settings.codec = codec
            let encoder = try settings.newEncoder()
            let samples = tone(frames: 16_000 * 5 + 77).map { $0 / 4 + offset }
            let segments = try encoder.encode(samples[...]) + encoder.finish()
            return segments.map { AudioLevel.decibels($0.meanSquare) }
        }
        let (plain, shifted) = (try levels(0), try levels(8192))
        #expect(plain.count == shifted.count && plain.count >= 5)
        for (first, second) in zip(plain, shifted) { #expect(abs(first - second) < 0.01) }
    }

    /// A Bluetooth headset has 16 kHz, whatever is asked of it.
    @Test func deviceThatIsTooSlow_isReported_alsoInTheRecord() throws {
        let (microphone, recorder) = (try Microphone(), try Recorder(enough: 2))
        let board = Publisher<SourceReport>()
        let device = microphone.device(rates: "16000", tone: 440)
        var settings = AudioSettings { $0.devices = [device] }
        (settings.codec, settings.rate) = (.wav, 48_000)
        AudioAdapter(
            settings: settings,
            sink: recorder.sink,
            board: board,
            clock: SystemClock()
        ).run(until: recorder.stop)
        #expect(
            board.state.value?.concern?.contains("delivers 16000 Hz, less than audio.rate = 48000")
                == true
        )
        let stored = try #require(recorder.all.runs.first?.device)
        #expect(CaptureDevice(stored: stored) == CaptureDevice(name: device, rate: 16_000))
        #expect(json(device: stored).contains("\"device_rate\":16000,"))
        // Of all others, and of earlier versions, not a byte is another one.
        #expect(json(device: "hw:0").contains("\"device\":\"hw:0\",\"clock\""))
    }

    private func json(device: String) -> String {
        let stamp = Stamp(
            boot: BootInstant(nanoseconds: 1),
            wall: WallTime(milliseconds: 1_795_235_407_000)
        )
        let chunk = Chunk(
            codec: .wav,
            rate: 48_000,
            device: device,
            preskip: 0,
            firstSegment: 1,
            segments: 1,
            frames: 48_000,
            overlapFrames: 0,
            meanSquare: 0.1,
            start: stamp
        )
        var text = JSONWriter()
        RecordJSON.write(chunk, id: "a", at: Moment(wall: stamp.wall, quality: .synced), to: &text)
        { _ in }
        return String(decoding: text.bytes, as: UTF8.self)
    }

    @Test func doctor_hearsWhatIsWrong() throws {
        let microphone = try Microphone()
        func level(_ mode: Microphone.Mode, rate: Int) throws -> AudioProbe.Level {
            microphone.become(mode)
            return try AudioProbe.listen(
                to: [microphone.device(tone: 440)],
                rate: rate,
                for: .seconds(1),
                onLevel: { _ in }
            )
        }
        #expect(try !level(.constant, rate: 16_000).hasSignal)
        for (mode, hasSignal) in [(.quiet, true), (.constant, false), (.zeros, false)]
            as [(Microphone.Mode, Bool)]
        {
            microphone.become(mode)
            let level = try AudioProbe.listen(
                to: [microphone.device(rates: "48000")],
                rate: 16_000,
                for: .seconds(1),
                onLevel: { _ in }
            )
            #expect(level.hasSignal == hasSignal, "\(mode)")
        }
        #expect(try level(.constant, rate: 16_000).average == AudioLevel.floor)
        let slow = try level(.fine, rate: 48_000)
        #expect(slow.hasSignal && slow.deviceRate == 16_000)
        var settings = AudioSettings()
        #expect(slow.concern(settings) == nil)
        settings.rate = 48_000
        #expect(slow.concern(settings)?.contains("set audio.rate to 16000 or less") == true)
    }
}
