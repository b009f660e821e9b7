// The whole source over the real libasound with a microphone that fails in each way: every sample is accounted for.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support
import Synchronization
import Testing

@testable import Audio

@Suite struct CaptureFaultTests {
    init() throws {
        try #require(TestALSA.isReady)
    }

    /// A source that runs on its own thread until the test ends.
    final class Source: Sendable {
        let microphone: Microphone
        let recorder: Recorder
        let board = Publisher<SourceReport>()
        /// Each failure reported to the status board: some last only milliseconds.
        private let reported = Mutex([String]())
        /// Each state reported since the first failure.
        let claims = Mutex([String]())
        /// Takes the place of `/`.
        private let temporary = TemporaryFolder()
        private var root: String { temporary.path }

        init(_ microphone: Microphone) throws {
            self.microphone = microphone
            recorder = try Recorder(enough: .max)
            try FileManager.default.createDirectory(
                atPath: root + "/dev/snd",
                withIntermediateDirectories: true
            )
        }

        /// A card's control device appears.
        func plugIn() throws {
            try Data().write(to: URL(fileURLWithPath: root + "/dev/snd/controlC\(runs)"))
        }

        /// Runs `body` while the source records.
        func run(
            _ devices: [String],
            clock: any HostClock = SystemClock(),
            _ body: () throws -> Void
        ) throws {
            var settings = AudioSettings { $0.devices = devices }
            settings.codec = .wav
            settings.chunk = .seconds(2)
            settings.overlap = .milliseconds(200)
            let adapter = AudioAdapter(
                settings: settings,
                sink: recorder.sink,
                board: board,
                clock: clock,
                cards: AudioCards(root: root)
            )
            let stop = recorder.stop
            let subscription = board.subscribe { [self] state in
                switch state {
                case .error(let failure, _): reported.withLock { $0.append(failure.description) }
                case .loaded(let report) where hasReported():
                    claims.withLock { $0.append(report.detail) }
                default: break
                }
            }
            let thread = try OwnThread("test-audio") { adapter.run(until: stop) }
            let result = Result { try body() }
            stop.raise()
            thread.join()
            withExtendedLifetime(subscription) {}
            try result.get()
        }

        /// Sound came in after what there was.
        func hears(_ segments: Int = 3) -> Bool {
            let before = recorder.all.segments.count
            return eventually { recorder.all.segments.count >= before + segments }
        }

        var failure: String? {
            guard case .error(let failure, _) = board.state else { return nil }
            return failure.description
        }

        /// The number of reported failures.
        var count: Int { reported.withLock { $0.count } }

        /// Returns true if a failure with these words was reported.
        func hasReported(_ words: String = "") -> Bool {
            reported.withLock { $0.contains { words.isEmpty || $0.contains(words) } }
        }

        var runs: Int { recorder.all.runs.count }
    }

    /// Lists what is wrong with the stored audio: each run is an unbroken ramp (or silence in its
    /// place), and between two runs as much is missing as the events say.
    private func problems(_ all: RecordingSink.Content, tolerance: Int = 800) -> [String] {
        let gaps = all.events.filter { $0.kind == .gap }
        guard gaps.count == all.runs.count - 1 else {
            return ["\(gaps.count) gaps, \(all.runs.count) runs"]
        }
        var found: [String] = []
        // The ramp's last value, and the frames reported as lost since.
        var last: (value: Int, since: Int)?
        for (number, run) in all.runs.enumerated() {
            if number > 0 { last?.since += lostFrames(gaps[number - 1]) }
            let samples = all.segments.filter { $0.run == run.id }.flatMap { decoded($0.data) }
            guard let index = samples.firstIndex(where: { $0 != 0 }) else {
                last?.since += samples.count
                continue
            }
            let first = Int(UInt16(bitPattern: samples[index])) - index + 65_536
            if let last {
                let turns = first - last.value - 1 - last.since
                // From -32,768 to 32,767, however much silence was in between.
                let off = ((turns + 32_768) % 65_536 + 65_536) % 65_536 - 32_768
                if abs(off) > tolerance { found.append("run \(run.id): \(off) too many missing") }
            }
            found += strangers(in: samples, from: first).map { "run \(run.id): \($0)" }
            last = ((first + samples.count - 1) % 65_536, 0)
        }
        return found
    }

    /// The first sample that is neither of the ramp nor silence.
    private func strangers(in samples: [Int16], from first: Int) -> [String] {
        let index = samples.indices.first {
            samples[$0] != 0 && Int(UInt16(bitPattern: samples[$0])) != (first + $0) % 65_536
        }
        return index.map { ["sample \($0) is \(samples[$0]), not \((first + $0) % 65_536)"] } ?? []
    }

    private func decoded(_ data: [UInt8]) -> [Int16] {
        stride(from: 0, to: data.count - 1, by: 2).map {
            Int16(bitPattern: UInt16(data[$0]) | UInt16(data[$0 + 1]) << 8)
        }
    }

    func lostFrames(_ gap: Event) -> Int {
        for (key, value) in gap.detail {
            if key == "lost_frames", case .integer(let frames) = value { return Int(frames) }
        }
        return -1
    }

    @Test func overruns_areGaps_andTheDeviceGoesOn() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            for count in 1...3 {
                #expect(source.hears())
                source.microphone.overrun(Int64(count))
                #expect(eventually { source.runs == count + 1 })
            }
            #expect(source.hears())
        }
        #expect(problems(source.recorder.all) == [])
        #expect(source.recorder.all.runs.count == 4)
    }

    @Test func aSuspend_isAGap() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            #expect(source.hears())
            source.microphone.suspend(1)
            #expect(eventually { source.runs == 2 })
            #expect(source.hears())
        }
        #expect(problems(source.recorder.all) == [])
    }

    /// It was found as a second fault: the frames that came late after a new start looked like a slow clock.
    @Test func aDeviceThatTakesItsTimeToStart_isFine() throws {
        let source = try Source(Microphone())
        source.microphone.delay(1500)
        try source.run([source.microphone.device()]) {
            #expect(source.hears(40))
        }
        #expect(source.runs == 1)
        #expect(problems(source.recorder.all) == [])
    }

    @Test(arguments: [Microphone.Mode.stalled, .failing, .zeros, .unplugged])
    func fault_isReported_andEverySampleIsAccountedFor(mode: Microphone.Mode) throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            #expect(source.hears())
            source.microphone.become(mode)
            // Digital silence is soon recorded again.
            #expect(eventually { source.hasReported(mode == .zeros ? "" : "waypost_mic") })
            source.microphone.become(.fine)
            #expect(eventually { source.runs >= 2 && source.failure == nil })
            #expect(source.hears())
        }
        #expect(problems(source.recorder.all) == [])
    }

    /// It opens and starts as if it were well, again and again: that is no sound.
    @Test func aDeviceThatGivesNothing_isNeverSaidToWork() throws {
        let source = try Source(Microphone())
        source.microphone.become(.stalled)
        try source.run([source.microphone.device()]) {
            #expect(eventually { source.hasReported("trying again soon") })
            #expect(source.claims.withLock { $0 } == [])
            #expect(source.failure?.contains("no sound for 3 s") == true)
            source.microphone.become(.fine)
            #expect(source.hears())
            #expect(source.failure == nil)
        }
    }

    /// An overrun is nobody's fault but this machine's, unless no sound comes before it.
    @Test(arguments: [Microphone.Mode.torn, .failing])
    func aDeviceThatEndsAtEachStart_isLeftForTheNext(mode: Microphone.Mode) throws {
        let source = try Source(Microphone())
        let other = try Microphone()
        source.microphone.become(mode)
        try source.run([source.microphone.device(), other.device()]) {
            let name = other.device()
            #expect(eventually { source.recorder.all.runs.contains { $0.device == name } })
        }
        #expect(source.hasReported("trying the next device"))
        #expect(!source.hasReported("too slow"))
    }

    /// The other device of the list is not there: the one that fails is not opened without end.
    @Test func aDeviceThatEndsAtEachStart_isLeftAloneForAWhile() throws {
        let source = try Source(Microphone())
        source.microphone.become(.failing)
        let clock = SystemClock()
        let start = clock.now()
        try source.run([source.microphone.device(), "waypost_missing"]) {
            #expect(eventually { source.count >= 12 })
        }
        // After each three tries 1, 2 and 4 s, or up to a fifth less.
        #expect(clock.now() - start > .seconds(5))
    }

    @Test func aSlowClock_isAFault() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            #expect(source.hears())
            source.microphone.drift(-250_000)
            #expect(eventually { source.hasReported("of the frames that it should") })
            source.microphone.drift(0)
            #expect(eventually { source.runs >= 2 && source.failure == nil })
            #expect(source.hears())
        }
    }

    @Test func unpluggedDevice_isReplaced_untilItReturns() throws {
        let source = try Source(Microphone())
        let other = try Microphone()
        let names = [source.microphone.device(), other.device()]
        try source.run(names) {
            #expect(source.hears())
            source.microphone.become(.unplugged)
            #expect(eventually { source.recorder.all.runs.last?.device == names[1] })
            #expect(source.hears())
            source.microphone.become(.fine)
            try source.plugIn()
            #expect(eventually { source.recorder.all.runs.last?.device == names[0] })
            #expect(source.hears())
        }
        let all = source.recorder.all
        #expect(all.runs.map(\.device) == [names[0], names[1], names[0]])
        #expect(all.events.count == 2)
        // The chunk under way was completed before the change: 10 segments, then 9 more each.
        let second = all.segments.filter { $0.run == 2 && $0.frames == 3200 }.count
        #expect(second >= 10 && (second - 10) % 9 <= 1)
    }

    @Test func pluggedInAgain_itIsFoundWithoutPolling() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            #expect(source.hears())
            source.microphone.become(.unplugged)
            #expect(eventually { source.failure?.contains("plug it in") == true })
            source.microphone.become(.fine)
            try source.plugIn()
            #expect(eventually { source.runs == 2 && source.failure == nil })
            #expect(source.hears())
        }
        #expect(problems(source.recorder.all) == [])
    }

    @Test func aStop_endsTheWaitAtOnce_andKeepsWhatCame() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            #expect(source.hears())
            source.microphone.become(.stalled)
        }
        let all = source.recorder.all
        #expect(all.ended == [1])
        #expect(problems(all) == [])
    }

    @Test(arguments: [(Microphone.Mode.busy, "in use by another program"), (.denied, "E005")])
    func open_saysWhyNot(mode: Microphone.Mode, words: String) throws {
        let microphone = try Microphone()
        microphone.become(mode)
        #expect {
            _ = try PCM(device: microphone.device(), rate: 16_000).rate
        } throws: {
            "\($0)".contains(words)
        }
    }

    @Test(arguments: [
        ("S16_LE", "48000", 1), ("S24_3LE", "44100 48000", 2), ("S32_LE", "96000", 2),
        ("FLOAT_LE", "44100", 1), ("S24_LE", "32000", 2),
    ])
    func anyNativeFormat_comesAtOurRate(format: String, rates: String, channels: Int) throws {
        let microphone = try Microphone()
        let name = microphone.device(rates: rates, formats: format, channels: channels, tone: 1000)
        var pcm = try PCM(device: name, rate: 16_000, wake: .milliseconds(100))
        #expect(pcm.shape.channels == channels)
        #expect(pcm.shape.rate != 16_000)
        #expect(try level(of: 1000, &pcm) > 0.99)
    }

    @Test(arguments: [(0, nil, 1), (1, nil, 2), (0, 2, 2), (1, 2, 2)] as [(Int64, Int?, Int)])
    func channel_isFirstNonSilentOne_unlessConfigured(
        muted: Int64,
        wanted: Int?,
        channel: Int
    ) throws {
        let microphone = try Microphone()
        microphone.mute(muted)
        let name = microphone.device(channels: 2, tone: 1000)
        var pcm = try PCM(device: name, rate: 16_000, channel: wanted, wake: .milliseconds(100))
        #expect(try level(of: 1000, &pcm) > 0.99)
        #expect(pcm.channel == channel)
    }

    @Test func channelThatIsSetAndSilent_isNotLeftForAnother() throws {
        let microphone = try Microphone()
        microphone.mute(1)
        let name = microphone.device(channels: 2, tone: 1000)
        var pcm = try PCM(device: name, rate: 16_000, channel: 1, wake: .milliseconds(100))
        #expect(try level(of: 1000, &pcm) == 0)
    }

    @Test func channelThatIsNotThere_isSaid() throws {
        let microphone = try Microphone()
        let name = microphone.device(channels: 2)
        let error = Failure(
            "\(name): has 2 channels and no channel 3; set audio.channel to \"auto\""
        )
        #expect(throws: error) { _ = try PCM(device: name, rate: 16_000, channel: 3).rate }
    }

    @Test func channelThatFallsSilent_givesWayToTheOther() throws {
        let source = try Source(Microphone())
        let device = source.microphone.device(channels: 2, tone: 1000)
        try source.run([device]) {
            #expect(eventually { source.board.state.value?.detail.contains("channel 1") == true })
            source.microphone.mute(1)
            #expect(eventually { source.board.state.value?.detail.contains("channel 2") == true })
        }
    }

    @Test func libasoundsConverter_isNotUsed() throws {
        let microphone = try Microphone()
        let name = microphone.plugged(rates: "48000", tone: 10_000)
        var pcm = try PCM(device: name, rate: 16_000, wake: .milliseconds(100))
        #expect(pcm.shape.rate == 48_000)
        // It would come back as 6 kHz.
        var samples: [Int16] = []
        while samples.count < 8000 {
            guard pcm.wait(milliseconds: 1000) else { break }
            _ = try pcm.read(into: &samples, limit: 4000)
        }
        #expect(samples.dropFirst(500).allSatisfy { abs($0) < 16 })
    }

    /// The share of a sine of half of full scale in what comes, 1 for all of it.
    private func level(of hertz: Double, _ pcm: inout PCM) throws -> Double {
        var samples: [Int16] = []
        while samples.count < 8000 {
            guard pcm.wait(milliseconds: 1000) else { break }
            _ = try pcm.read(into: &samples, limit: 4000)
        }
        let part = samples.dropFirst(1000).prefix(6400)
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in part.enumerated() {
            let angle = 2 * Double.pi * hertz * Double(index) / 16_000
            real += Double(sample) * cos(angle)
            imaginary += Double(sample) * sin(angle)
        }
        return (real * real + imaginary * imaginary).squareRoot() * 2 / Double(part.count) / 16_384
    }
}
