// The samples of a window, by the device's position.
import Host
import Records
import SourceSupport
import Testing

@testable import Audio

@Suite struct CaptureClipTests {
    private let start = Stamp(
        boot: BootInstant(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    /// A device of 16 kHz whose first frame was captured at `start`.
    private func capture() throws -> Capture {
        var settings = AudioSettings()
        settings.codec = .wav
        let capture = try Capture(
            settings: settings,
            device: "mic",
            deviceRate: 16_000,
            sink: RecordingSink()
        )
        for second in 1...3 {
            capture.observe(
                Position(
                    captured: Int64(second * 16_000),
                    age: .zero,
                    now: start.advanced(by: .seconds(second))
                )
            )
        }
        return capture
    }

    @Test func firstSample_isThatAtTheOpening() throws {
        let capture = try capture()
        let window = RecordingWindow(opens: start.boot + .milliseconds(1500))
        let samples = (0..<16_000).map { Int16($0) }
        #expect(capture.clip(samples, to: window).isEmpty)
        let first = capture.clip(samples, to: window)
        #expect(first.first == 8000)
        #expect(capture.begin())
        #expect(capture.startStamp?.boot == start.boot + .milliseconds(1500))
    }

    /// Samples after the end were dropped: if the window is extended, the next ones are another run.
    @Test func endedCapture_keepsNothing_ifWindowIsExtended() throws {
        let capture = try capture()
        let samples = [Int16](repeating: 1, count: 16_000)
        let kept = capture.clip(
            samples,
            to: RecordingWindow(closes: start.boot + .milliseconds(250))
        )
        #expect(kept.count == 4000)
        #expect(capture.isOver)
        #expect(capture.begin())
        _ = try capture.receive(kept)
        #expect(capture.clip(samples, to: RecordingWindow()).isEmpty)
    }
}
