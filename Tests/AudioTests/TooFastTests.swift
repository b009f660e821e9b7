// Devices that deliver more audio than time passes: none of it is stored or dated in the future.
import Configuration
import Foundation
import Host
import Queue
import Records
import SourceSupport
import Support
import Synchronization
import Testing

@testable import Audio

extension CaptureFaultTests {
    /// Returns the stored segments that end after the present time.
    func future(_ source: Source, by clock: any HostClock = SystemClock()) -> [Segment] {
        let segments = source.recorder.all.segments
        let now = clock.now()
        return segments.filter { $0.start.boot + .seconds(Double($0.frames) / 16_000) > now }
    }

    /// A container's or a headless machine's `default`, and the one of a public report.
    @Test(arguments: ["null", "waypost_file"])
    func deviceWithoutClock_failsAtOnce_andStoresNothing(device: String) throws {
        let folder = TemporaryFolder()
        let noise = (0..<64_000).map { Int16(truncatingIfNeeded: $0 &* 40_503) }
        try Data(bytes(noise)).write(to: URL(fileURLWithPath: folder.path + "/noise.raw"))
        let source = try Source(Microphone())
        let name = device == "null" ? device : "\(device):\(folder.path)/noise.raw"
        try source.run([name]) {
            #expect(eventually { source.count >= 4 })
            #expect(source.failure?.contains("% of the frames that it should: it is not a") == true)
        }
        #expect(source.recorder.all.segments.isEmpty)
        #expect(source.claims.withLock { $0 } == [])
    }

    /// Three times and twice the rate, and 48 kHz told as 44.1 kHz.
    @Test(arguments: [2_000_000, 1_000_000, 88_000] as [Int64])
    func aFastMicrophone_isAFault_untilItHasRunRight(ppm: Int64) throws {
        let source = try Source(Microphone())
        source.microphone.drift(ppm)
        try source.run([source.microphone.device()]) {
            #expect(eventually { source.count >= 1 && future(source).isEmpty })
            let stored = source.recorder.all.segments.count
            // A second or two if it is three times as fast.
            #expect(stored <= (ppm > 500_000 ? 3 : 15))
            #expect(eventually { source.count >= 4 })
            #expect(source.recorder.all.segments.count == stored)
            #expect(source.claims.withLock { $0 } == [])
            #expect(!source.hasReported("too slow"))
            guard ppm == 1_000_000 else { return }
            source.microphone.drift(0)
            #expect(eventually { source.failure == nil })
            #expect(source.hears())
            #expect(future(source).isEmpty)
        }
        let gaps = source.recorder.all.events.filter { $0.kind == .gap }
        #expect(gaps.allSatisfy { lostFrames($0) >= 0 })
    }

    @Test func doctor_hearsThroughTheBacklogOfASoundServer() throws {
        let microphone = try Microphone()
        microphone.delay(-2000)
        let device = microphone.device(tone: 440)
        let heard = try AudioProbe.listen(to: [device], rate: 16_000, for: .seconds(1)) { _ in }
        #expect(heard.hasSignal && abs(heard.average - -9) < 0.5)
    }

    @Test func doctor_hearsADeviceThatIsTooFast() throws {
        let microphone = try Microphone()
        microphone.drift(2_000_000)
        for device in [microphone.device(tone: 440), "null"] {
            #expect {
                try AudioProbe.listen(to: [device], rate: 16_000, for: .seconds(1)) { _ in }
            } throws: {
                "\($0)".contains("% of the frames that it should")
            }
        }
    }
}

@Suite struct TooFastTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000_000)

    /// Returns the first second in which a device with `frames` at each second is found at fault.
    private func found(_ seconds: Int = 120, _ frames: (Int) -> Int) -> Int? {
        var liveness = Liveness(rate: 48_000, period: 2400, started: start)
        return (1...seconds).first {
            liveness.check(captured: Int64(frames($0)), at: start + .seconds($0)) != nil
        }
    }

    @Test func liveness_findsMoreThanTimePassed() {
        #expect(found { $0 * 3 * 48_000 }.map { $0 <= 2 } == true)
        #expect(found { $0 * 2 * 48_000 }.map { $0 <= 2 } == true)
        #expect(found { $0 * 48_000 * 480 / 441 }.map { $0 <= 3 } == true)
        // A sound server's backlog, and a quartz.
        #expect(found { $0 * 48_000 + 72_000 } == nil)
        #expect(found(3600) { $0 * 48_005 } == nil)
    }

    /// The part of a second before the fault is found.
    @Test func segments_neverEndInTheFuture() throws {
        var settings = AudioSettings { $0.devices = ["test"] }
        settings.codec = .wav
        let sink = RecordingSink()
        let capture = try Capture(settings: settings, device: "mic", deviceRate: 16_000, sink: sink)
        let began = Stamp(boot: start, wall: WallTime(milliseconds: 1_795_235_407_000))
        for second in 1...20 {
            let now = began.advanced(by: .milliseconds(Int64(second) * 600))
            capture.observe(Position(captured: Int64(second) * 16_000, age: .zero, now: now))
            _ = capture.begin()
            for segment in try capture.receive(tone(frames: 16_000)[...]) {
                #expect(segment.start.boot + .seconds(1) <= now.boot)
            }
            #expect(try #require(capture.endStamp).boot <= now.boot)
        }
    }

    @Test func gap_neverEndsBeforeItBegins() {
        let now = Stamp(boot: start, wall: WallTime(milliseconds: 1_795_235_407_000))
        let later = now.advanced(by: .seconds(3))
        let gap = AudioSettings().gap(from: later, to: now, device: "mic", reason: "too fast")
        let times = gap.detail.filter { ["from", "to"].contains($0.key) }.map(\.value)
        #expect(times == [.time(now.wall), .time(now.wall)])
        #expect(gap.loss?.from == now)
    }
}
