// A device that stands still together with this program and does not report it: the dates after it, and the gap.
import Foundation
import Host
import Queue
import Records
import Support
import Synchronization
import SourceSupport
import Testing

import Audio

/// The kernel's clocks, which have gone on for longer than this program has run.
private final class LaterClock: HostClock {
    private let system = SystemClock()
    private let offset = Mutex(Duration.zero)

    /// Nothing ran for so long: neither this program nor the device.
    func standStill(for length: Duration) { offset.withLock { $0 += length } }

    func now() -> BootInstant { system.now() + offset.withLock { $0 } }

    func wall() -> WallTime { system.wall() + offset.withLock { $0 } }
}

/// The kernel's clocks while they are slewed: of 100 s they leave out `percent`.
private struct SlewedClock: HostClock {
    let percent: Int64
    let began = SystemClock().now()

    func slewed() -> Duration { (SystemClock().now() - began) * percent / 100 }

    func now() -> BootInstant { SystemClock().now() - slewed() }

    func wall() -> WallTime { SystemClock().wall() + (.zero - slewed()) }

    /// The time to take from one that they gave, for what it was in truth.
    func excess(_ time: BootInstant) -> Duration {
        .zero - (time - began) * percent / (100 - percent)
    }
}

extension CaptureFaultTests {
    @Test(arguments: [8, -8] as [Int64])
    func clockThatIsSlewed_costsNoSound(percent: Int64) throws {
        let source = try Source(Microphone())
        let clock = SlewedClock(percent: percent)
        try source.run([source.microphone.device()], clock: clock) {
            // Ten seconds, for a fault is found after five.
            #expect(source.hears(50))
            #expect(future(source, by: clock).isEmpty)
        }
        let all = source.recorder.all
        #expect(all.runs.count == 1)
        for segment in all.segments {
            let excess = clock.excess(segment.start.boot)
            #expect(abs(source.microphone.error(of: segment, later: excess)) < 0.15)
        }
    }

    /// 45 s and 65 s as a SIGSTOP or a paused machine, 2 h as a suspend that the driver does not report.
    @Test(arguments: [45.0, 65, 7200], [0, 1, 40])
    func aPause_endsTheRun_andLaterSoundIsDatedRight(length: Double, segments: Int) throws {
        let source = try Source(Microphone())
        let clock = LaterClock()
        let pause = Duration.seconds(length)
        try source.run([source.microphone.device()], clock: clock) {
            #expect(eventually { source.recorder.all.segments.count > segments })
            clock.standStill(for: pause)
            #expect(eventually { source.runs == 2 })
            #expect(source.hears())
        }
        let all = source.recorder.all
        #expect(all.runs.count == 2)
        let before = all.segments.filter { $0.run == 1 }
        let after = all.segments.filter { $0.run == 2 }
        // All sound of a run is of one side of the pause, and dated by when it was captured.
        #expect(before.allSatisfy { abs(source.microphone.error(of: $0)) < 0.1 })
        #expect(after.allSatisfy { abs(source.microphone.error(of: $0, later: pause)) < 0.1 })
        let gaps = all.events.filter { $0.kind == .gap }
        #expect(gaps.count == 1)
        let lost = try Double(lostFrames(#require(gaps.first))) / 16_000
        #expect(lost >= length && lost < length + 5)
        #expect(source.hasReported("stood still for \(Int(length))"))
    }
}

extension Microphone {
    /// Seconds by which a segment of its ramp is dated too late; `later`: how much of its date is a pause.
    func error(of segment: Segment, later: Duration = .zero) -> Double {
        guard segment.data.count > 1 else { return 0 }
        let value = Int(segment.data[0]) | Int(segment.data[1]) << 8
        let boot = segment.start.boot - later
        // CLOCK_BOOTTIME and the ramp's CLOCK_MONOTONIC differ by the time that this machine was suspended.
        var monotonic = timespec()
        clock_gettime(CLOCK_MONOTONIC, &monotonic)
        let now = Int64(monotonic.tv_sec) * 1_000_000_000 + Int64(monotonic.tv_nsec)
        let suspended = SystemClock().now().nanoseconds - now
        let frame = Int((boot.nanoseconds - suspended - epoch) * 16 / 1_000_000)
        return Double((frame - value + 32_768) & 0xFFFF - 32_768) / 16_000
    }
}
