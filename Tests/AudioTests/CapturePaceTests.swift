// A segment is given out with the read that makes it whole, whatever the encoder holds back.
import Configuration
import Host
import Queue
import Records
import SourceSupport
import Support
import Testing

@testable import Audio

@Suite struct CapturePaceTests {
    @Test(arguments: AudioCodec.allCases)
    func eachRead_givesASegment(codec: AudioCodec) throws {
        var settings = AudioSettings { $0.devices = ["test"] }
        settings.codec = codec
        let recorder = try Recorder(enough: .max)
        let capture = try Capture(
            settings: settings,
            device: "test",
            deviceRate: 16_000,
            sink: recorder.sink
        )
        let start = testStart
        let sound = tone(frames: 16_000 * 12)
        var at = 0
        for read in 0..<10 {
            let missing = capture.missing
            let now = start.advanced(by: .milliseconds(Int64(at + missing) / 16))
            capture.observe(Position(captured: Int64(at + missing), age: .zero, now: now))
            _ = capture.begin()
            let segments = try capture.receive(sound[at..<(at + missing)])
            #expect(segments.count == (read == 0 ? 0 : 1))
            at += missing
        }
        // And not by reading far beyond them.
        #expect(at < 16_000 * 10)
    }
}
