// The edges of a schedule's window: the first and the last sample, and what counts as missing.
import Foundation
import Host
import Records
import SourceSupport
import Support
import Testing

@testable import Audio

extension CaptureFaultTests {
    /// The device is opened early: its ramp shows when each sample was captured.
    @Test func window_isRecordedFromItsFirstToItsLastSample() throws {
        let source = try Source(Microphone())
        let now = SystemClock().now()
        let window = RecordingWindow(
            opens: now + .milliseconds(1500),
            closes: now + .milliseconds(4000)
        )
        source.recorder.sink.window = window
        try source.run([source.microphone.device()]) {
            #expect(eventually { source.recorder.all.ended.count == 1 })
        }
        let all = source.recorder.all
        #expect(all.runs.count == 1)
        let first = try #require(all.segments.first)
        let opens = try #require(window.opens)
        #expect(abs((first.start.boot - opens).inSeconds) < 0.02)
        #expect(abs(source.microphone.error(of: first)) < 0.1)
        let frames = all.segments.reduce(0) { $0 + $1.frames }
        #expect(abs(frames - 40_000) < 16)
        #expect(all.events.isEmpty)
        #expect(all.losses.isEmpty)
    }

    /// The clock was set back while it recorded: the window's end moves away.
    @Test func windowThatIsExtended_goesOn() throws {
        let source = try Source(Microphone())
        let now = SystemClock().now()
        source.recorder.sink.window.closes = now + .seconds(2)
        try source.run([source.microphone.device()]) {
            #expect(source.hears(2))
            source.recorder.sink.window.closes = nil
            #expect(source.hears(20))
        }
        #expect(source.recorder.all.runs.count == 1)
    }

    @Test func windowThatIsOver_opensNoDevice_untilItIsExtended() throws {
        let source = try Source(Microphone())
        source.recorder.sink.window.closes = SystemClock().now()
        source.microphone.become(.denied)
        try source.run([source.microphone.device()]) {
            // It opens the device only once the window is extended.
            #expect(!source.hasReported())
            source.recorder.sink.window.closes = nil
            #expect(eventually { source.hasReported() })
        }
        #expect(source.recorder.all.runs.isEmpty)
    }
}
