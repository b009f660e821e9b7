// The real program with a bucket as its destination: enrolment, kill -9, status.
import Foundation
import Glibc
import Support
import Testing

@Suite(.serialized) struct BucketSystemTests {
    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        let store: ObjectStore
        private var daemon: Process?

        init(faults: [String]) throws {
            store = try ObjectStore(faults: faults)
            let capture = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../Fixtures/beacons/capture.btsnoop").standardized.path
            let keys = folder + "/s3"
            try """
            [default]
            aws_access_key_id = \(store.access.id)
            aws_secret_access_key = \(store.access.secret)
            """.write(toFile: keys, atomically: true, encoding: .utf8)
            chmod(keys, 0o600)
            try """
            device_id = "pi-1"
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            destination = "s3"
            bucket_url = "\(store.access.url)"
            credentials_file = "\(keys)"
            compression = "zstd"
            interval = "500ms"
            [beacons]
            source = "btsnoop:\(capture)"
            replay_speed = 0
            [location]
            enabled = false
            [audio]
            enabled = false
            """.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
        }

        deinit {
            stop()
        }

        func start() throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            process.arguments = ["run", "--config", folder + "/waypost.toml"]
            process.standardError = FileHandle.nullDevice
            try process.run()
            daemon = process
        }

        /// As a power cut does.
        func stop() {
            guard let daemon else { return }
            kill(daemon.processIdentifier, SIGKILL)
            daemon.waitUntilExit()
            self.daemon = nil
        }

        func run(_ arguments: String...) throws -> Outcome {
            try Process.run(
                Tree.program("waypost"),
                arguments + ["--config", folder + "/waypost.toml"]
            )
        }

        /// Records that the gateway believes to be stored, by stream.
        func uploaded() throws -> [String: Int] {
            let text = try run("status", "--json").output
            let json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let streams = json?["streams"] as? [String: [String: Any]] ?? [:]
            return streams.compactMapValues { $0["uploaded"] as? Int }.filter { $0.value > 0 }
        }

        /// Waits until records of a stream are stored and nothing is left.
        func waitForUpload(of stream: String) throws {
            try waitUntil("uploads of \(stream)") {
                try (try? uploaded())?[stream] != nil && run("sync", "--wait", "30").status == 0
            }
        }
    }

    @Test func killBetweenStoredAndMarked_storesTheSameObjectAgain_eachRecordOnce() throws {
        let bench = try Bench(faults: ["hang"])
        try bench.start()
        // Its answer never comes.
        var hung = bench.store.nextPut()
        while !hung.hasPrefix("hang ") { hung = bench.store.nextPut() }
        bench.stop()
        try bench.start()
        try bench.waitForUpload(of: "linux_bluez_beacons")
        let uploaded = try bench.uploaded()
        bench.stop()
        let contents = try bench.store.contents()
        let key = String(hung.dropFirst("hang ".count))
        #expect(contents.objects[key] == "application/zstd")
        let stored = contents.rows.reduce(into: [:]) { $0[$1.stream, default: 0] += $1.records }
        #expect(stored == uploaded)
        #expect(contents.rows.allSatisfy { $0.ids == $0.records && $0.device == "pi-1" })
        // Collecting began only when the store had taken a first object.
        #expect(contents.objects["_waypost/device=pi-1.json"] == "application/json")
        #expect(FileManager.default.fileExists(atPath: bench.folder + "/state/enrolled"))
    }

    @Test func keys_areShownNowhere() throws {
        let bench = try Bench(faults: ["403", "403", "403"])
        try bench.start()
        var status = ""
        try waitUntil("E002") {
            status = try bench.run("status", "--json").output
            return status.contains("E002")
        }
        #expect(status.contains("the store refused the keys"))
        let shown = try bench.run("config", "show").output
        #expect(shown.contains("destination = \"s3\""))
        for text in [status, shown, try bench.run("status").output] {
            #expect(!text.contains(bench.store.access.secret))
            #expect(!text.contains(bench.store.access.id))
        }
    }
}
