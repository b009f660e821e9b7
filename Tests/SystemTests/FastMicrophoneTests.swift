// The real gateway with a device that gives sound as fast as it is read, as a public report has it.
import Foundation
import Support
import Testing

@Suite struct FastMicrophoneTests {
    @Test func aDeviceWithoutAClock_isDegraded_andItsTimeIsFailed() throws {
        let device = try Device(
            """
            [upload]
            required = false
            [beacons]
            enabled = false
            [location]
            enabled = false
            [audio]
            device = "mic"
            codec = "wav"
            chunk = "4s"
            [storage]
            commit_interval = "100ms"
            """
        )
        let noise = (0..<64_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435) }
        try Data(noise).write(to: URL(fileURLWithPath: device.folder + "/noise.raw"))
        try device.write(
            """
            pcm.null { type null }
            pcm.mic {
                type file
                slave.pcm { type null }
                file "/dev/null"
                infile "\(device.folder)/noise.raw"
                format "raw"
            }

            """,
            "asound.conf"
        )
        device.environment["ALSA_CONFIG_PATH"] = device.folder + "/asound.conf"
        try device.start()
        let words = "% of the frames that it should"
        try waitUntil("the fault") {
            (try device.source("audio")["reason"] as? String)?.contains(words) == true
        }
        #expect(try device.status()["state"] as? String == "degraded")
        let restarts = try device.source("audio")["restarts"] as? Int ?? 0
        try waitUntil("more tries") {
            try device.source("audio")["restarts"] as? Int ?? 0 > restarts + 2
        }
        #expect(try device.stop() == 0)
        #expect(try device.run("export", "audio").output.isEmpty)
        // Without a synced clock no interval is a record yet.
        let memo = try device.effortMemo().split(separator: "\n").map(String.init)
        let spans = memo.drop { !$0.hasPrefix("audio") }.dropFirst()
        #expect(spans.contains { $0.contains(" failed ") && $0.contains(words) }, "\(memo)")
        #expect(
            !spans.contains { $0.contains(" recorded ") || $0.contains(" listening ") },
            "\(memo)"
        )
    }
}
