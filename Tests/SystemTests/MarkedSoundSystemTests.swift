// Only the sound that matters, on the real programs: a detector, a person and a server that ask for it.
import Foundation
import Glibc
import Support
import Testing

@Suite struct MarkedSoundSystemTests {
    private static let id = "hut-1"

    private final class Fixture: Device {
        init(_ upload: String) throws {
            try super.init()
            try write("demo-token", "token", mode: 0o600)
            try useRampMicrophone()
            let endpoint = try startReceiver()
            try configure(
                """
                device_id = "\(MarkedSoundSystemTests.id)"
                [upload]
                required = false
                endpoint = "\(endpoint)"
                token_file = "\(folder)/token"
                interval = "2s"
                [audio]
                device = "mic"
                codec = "wav"
                chunk = "4s"
                overlap = "1s"
                upload = "\(upload)"
                mark_margin = "1s"
                [stream.markers]
                marks_audio = true
                [remote]
                allow = ["operate"]
                """
            )
            try start()
            try waitUntil("held sound") { try self.held >= 2 }
        }

        var held: Int { get throws { try stream("linux_alsa_audio")["held"] as? Int ?? 0 } }

        /// Runs until a detector has reported some markers of the ramp, which come every 4.1 s.
        func detect(_ count: Int) throws {
            let script = Tree.path("Tests/Peers/marker_detector.py")
            let listen = try Process.started(
                Tree.program("waypost"),
                ["listen", "--config", config, "--segments", "700ms", "--put", "markers"]
                    + ["--exec", "python3 \(script)"]
            )
            children.append(listen)
            try waitUntil("markers") { try self.arrived("markers").count >= count }
            kill(listen.processIdentifier, SIGTERM)
            try waitUntil("the end of listen") { !listen.isRunning }
        }

        /// Whether a chunk at the server has a moment, in ms since 1970.
        func hasSound(of moment: Double) throws -> Bool {
            try storedChunks().contains { chunk in
                (chunk.start...(chunk.start + Double(chunk.samples.count) / 16)).contains(moment)
            }
        }
    }

    @Test func detectionsPeopleAndTheServer_getTheirSound() throws {
        let device = try Fixture("marked")
        #expect(try device.arrived("linux_alsa_audio").isEmpty)
        let from = try #require(try device.stream("linux_alsa_audio")["held_from"] as? String)
        try device.detect(2)
        device.killDaemon()
        try device.start()
        let markers = try device.arrived("markers").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try milliseconds(try #require(object?["timestamp"] as? String))
        }
        for marker in markers {
            try waitUntil("the sound of a marker") { try device.hasSound(of: marker) }
        }
        // Sound from before them stays.
        #expect(try device.held >= 1)
        #expect(try !device.hasSound(of: try milliseconds(from)))
        #expect(try device.run("status").output.contains(" of sound, "))

        // The server asks, as a person does with a button.
        let began = try milliseconds(from)
        let asked = try Process.run(
            Tree.program("waypost-receiver"),
            ["audio", Self.id, "--from", text(began), "--to", text(began + 1000)]
                + ["--data", device.folder + "/data"]
        )
        #expect(asked.status == 0, "\(asked.error)")
        try waitUntil("the sound that was asked for") { try device.hasSound(of: began) }
        let reply = try #require(try device.arrived("waypost_replies").first)
        #expect(reply.contains("1 chunk of held sound to be sent"), "\(reply)")

        // Somebody at the device asks for all of it, and for what is recorded in the next minute.
        let mark = try device.run(
            "audio",
            "mark",
            "--from",
            text(began),
            "--to",
            text(began + 600_000)
        )
        #expect(mark.status == 0 && mark.output.contains(" of held sound go"), "\(mark)")
        try waitUntil("all of it") { try device.held == 0 }
        let before = try device.arrived("linux_alsa_audio").count
        try waitUntil("more of it") { try device.arrived("linux_alsa_audio").count > before + 1 }
        let again = try device.run("audio", "mark", "--from", "2d", "--to", "1d")
        #expect(again.status == 1 && again.error.contains("no sound of then is held"), "\(again)")
        #expect(try device.run("audio", "mark", "--from", "1h", "--to", "2h").status == 64)
        #expect(try device.stop() == 0)
    }

    @Test func withNone_nobodyGetsSound() throws {
        let device = try Fixture("none")
        try device.detect(1)
        let mark = try device.run("audio", "mark", "--from", "1h", "--to", "0s")
        #expect(mark.status == 2 && mark.error.contains("audio.upload is \"none\""), "\(mark)")
        #expect(try device.arrived("linux_alsa_audio").isEmpty)
        // A reload, without a new run of the source.
        let config = try String(contentsOfFile: device.config, encoding: .utf8)
        try device.write(
            config.replacingOccurrences(of: "\"none\"", with: "\"all\""),
            "waypost.toml"
        )
        let restarts = try device.source("audio")["restarts"] as? Int
        device.signal(SIGHUP)
        try waitUntil("all of it") { try device.stream("linux_alsa_audio")["held"] == nil }
        try waitUntil("sound") { try device.arrived("linux_alsa_audio").count >= 2 }
        #expect(try device.source("audio")["restarts"] as? Int == restarts)
        #expect(try device.stop() == 0)
    }

    /// An RFC 3339 time of milliseconds since 1970.
    private func text(_ moment: Double) -> String {
        let form = ISO8601DateFormatter()
        form.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return form.string(from: Date(timeIntervalSince1970: moment / 1000))
    }
}
