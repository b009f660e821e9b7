// The real program with a hanging call: reported by the call's name, and stopped in time.
import Foundation
import Glibc
import Host
import Queue
import QueueSupport
import Support
import Testing

@Suite struct HangTests {
    /// A hanging call, and its report in `status`.
    struct Hang: Sendable, CustomTestStringConvertible {
        /// The call's name in Tests/FieldFaults/hangs.c; empty: audio, through a FIFO.
        var call: String
        /// The source with the call; nil for storage.
        var source: String?
        /// A part of the reported reason.
        var reason: String
        var testDescription: String { call.isEmpty ? "libasound" : call }
    }

    static let hangs = [
        Hang(call: "", source: "audio", reason: "snd_pcm_"),
        Hang(call: "getaddrinfo", source: "location", reason: "the name server has not answered"),
        Hang(call: "HCIDEVUP", source: "beacons", reason: "ioctl(HCIDEVUP)"),
        Hang(call: "fsync", source: nil, reason: "SQLite"),
    ]

    /// A daemon in which one call hangs while a file exists.
    private final class Fixture: Device {
        private let hang: Hang
        /// Both ends of the FIFO, so that opening it does not block.
        private var sound: Int32 = -1

        init(_ hang: Hang, more: [String: String] = [:]) throws {
            self.hang = hang
            try super.init()
            let files = FileManager.default
            try files.createDirectory(atPath: folder + "/state", withIntermediateDirectories: true)
            let library = try library(Tree.path("Tests/FieldFaults/hangs.c"), to: "hangs.so")
            try makeMicrophone()
            try configure(
                """
                [beacons]
                enabled = \(hang.source == "beacons")
                [audio]
                enabled = \(hang.source == "audio")
                device = "mic"
                [location]
                enabled = \(hang.source == "location")
                gpsd = "gpsd.example:2947"
                [storage]
                commit_interval = "100ms"
                [stream.tide]
                """
            )
            environment = [
                "LD_PRELOAD": library, "HANGS_WHILE": folder + "/hang",
                "HANGS_CALLS": hang.call, "ALSA_CONFIG_PATH": folder + "/asound.conf",
            ].merging(more) { $1 }
        }

        deinit { close(sound) }

        /// A microphone that delivers five seconds of sound and then blocks.
        private func makeMicrophone() throws {
            try #require(mkfifo(folder + "/mic.raw", 0o600) == 0)
            sound = open(folder + "/mic.raw", O_RDWR)
            _ = fcntl(sound, 1031, 1 << 20)
            let samples = [UInt8](repeating: 0x41, count: 160_000)
            try #require(Glibc.write(sound, samples, samples.count) == samples.count)
            try fileMicrophone(folder + "/mic.raw", isFIFO: true)
                .write(toFile: folder + "/asound.conf", atomically: true, encoding: .utf8)
        }

        /// Starts the daemon without a hang, and returns once it has written its status.
        func begin(log: Any = FileHandle.nullDevice) throws {
            try launch(log)
            try waitUntil("a start") { try !snapshot().isEmpty }
        }

        private func launch(_ log: Any = FileHandle.nullDevice) throws {
            try launch(["--patience", "2"], log: log)
        }

        /// Starts the daemon, and returns once the call hangs.
        func startAndHang() throws {
            if hang.source != nil { makeHang() }
            guard hang.source == nil else {
                try launch()
                return try waitUntil("the call") {
                    hang.call.isEmpty ? isSilent : exists("hang.\(hang.call)")
                }
            }
            // A disk that hangs from the start is a separate test.
            try begin()
            makeHang()
            try putRecord()
            try waitUntil("the call") { exists("hang.fsync") }
        }

        /// Puts a record, without waiting for the answer.
        private func putRecord() throws {
            let input = Pipe()
            let arguments = ["put", "tide", "--config", config]
            children.append(try .started(Tree.program("waypost"), arguments, input: input))
            try input.fileHandleForWriting.write(contentsOf: Data("{\"level_m\": 1}\n".utf8))
            try input.fileHandleForWriting.close()
        }

        func makeHang() {
            _ = FileManager.default.createFile(atPath: folder + "/hang", contents: nil)
        }

        private func exists(_ name: String) -> Bool {
            FileManager.default.fileExists(atPath: folder + "/" + name)
        }

        /// True once all sound was read.
        private var isSilent: Bool {
            var waiting: Int32 = 1
            return ioctl(sound, UInt(FIONREAD), &waiting) == 0 && waiting == 0
        }

        /// The snapshot, which needs no answer from the daemon.
        func snapshot() throws -> [String: Any] {
            guard let data = FileManager.default.contents(atPath: folder + "/run/status.json")
            else {
                return [:]
            }
            return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
        }

        /// The reason of the hanging part in `status`.
        func reason() throws -> String {
            let status = try snapshot()
            guard let source = hang.source else {
                return (status["reasons"] as? [String] ?? []).joined(separator: "; ")
            }
            let sources = status["sources"] as? [String: [String: Any]]
            return sources?[source]?["reason"] as? String ?? ""
        }

        /// Starts the daemon on a hanging disk, and returns once the call hangs.
        func startOnADiskThatHangs() throws {
            makeHang()
            try launch()
            try waitUntil("the call") { exists("hang.fsync") }
        }

        /// The number of the daemon's threads with this name (proc(5)).
        func threads(_ name: String) throws -> Int {
            let tasks = "/proc/\(try #require(daemon).processIdentifier)/task"
            let numbers = try FileManager.default.contentsOfDirectory(atPath: tasks)
            let names = numbers.map { SmallText.read("\(tasks)/\($0)/comm") }
            return names.filter { $0 == name + "\n" }.count
        }

        func endHang() throws { try FileManager.default.removeItem(atPath: folder + "/hang") }

        /// The output of `waypost status`.
        func screen() throws -> String {
            let outcome = try run("status")
            return outcome.output + outcome.error
        }
    }

    @Test(arguments: hangs)
    func callThatNeverReturns_isNamed_andHoldsUpNoStop(_ hang: Hang) throws {
        let fixture = try Fixture(hang)
        try fixture.startAndHang()
        try waitUntil("its name") { try fixture.reason().contains(hang.reason) }
        #expect(try fixture.stop() == 0)
    }

    @Test(arguments: hangs)
    func stopRightAfterACallHangs_isObeyed(_ hang: Hang) throws {
        let fixture = try Fixture(hang)
        try fixture.startAndHang()
        #expect(try fixture.stop() == 0)
    }

    /// Each restart of a hung part leaves a thread behind: the program retries, and people try,
    /// too.
    @Test func repeatedRestarts_leaveAtMostFourThreads_andRecover() throws {
        let fixture = try Fixture(
            Hang(call: "HCIDEVUP", source: "beacons", reason: "ioctl(HCIDEVUP)")
        )
        try fixture.startAndHang()
        for _ in 0..<6 { _ = try fixture.run("restart", "beacons") }
        #expect(try fixture.threads("beacons") <= 4)
        try waitUntil("its reason") { try fixture.reason().contains("earlier starts of it hang") }
        try fixture.endHang()
        try waitUntil("one start") { try fixture.threads("beacons") == 1 }
        #expect(try fixture.stop() == 0)
    }

    private static let disk = Hang(call: "fsync", source: nil, reason: "")

    @Test func startOnHungDisk_isReported_andResumesWithTheDisk() throws {
        let fixture = try Fixture(Self.disk)
        try fixture.startOnADiskThatHangs()
        try waitUntil("what it waits for") {
            try fixture.screen().contains("starting: no answer for")
        }
        #expect(try fixture.snapshot().isEmpty)
        try fixture.endHang()
        try waitUntil("its start") { try !fixture.screen().contains("starting") }
        #expect(try fixture.stop() == 0)
    }

    @Test func stopOfAStartThatHangs_isObeyed() throws {
        let fixture = try Fixture(Self.disk)
        try fixture.startOnADiskThatHangs()
        #expect(try fixture.stop() == 0)
    }

    /// The disk is so slow that the database check runs beside everything else.
    @Test func hungCheck_isReportedByName() throws {
        let more = ["HANGS_THREAD": "maintenance", "HANGS_SLOW_MS": "150"]
        let fixture = try Fixture(
            Hang(call: "pread", source: nil, reason: "quick_check"),
            more: more
        )
        let path = fixture.folder + "/state/queue.sqlite"
        try Queue(at: path, bootID: "0").close()
        fixture.makeHang()
        try fixture.begin()
        try waitUntil("its name") {
            let errors = try fixture.snapshot()["recent_errors"] as? [[String: Any]] ?? []
            return errors.contains {
                ($0["message"] as? String)?.contains("in quick_check") == true
            }
        }
        try fixture.endHang()
        #expect(try fixture.stop() == 0)
    }

    /// Standard error blocks, as with a stopped journald.
    @Test func unreadStandardError_blocksNothing_andReportsLoss() throws {
        let log = Pipe()
        let (input, output) = (log.fileHandleForReading, log.fileHandleForWriting)
        for end in [input, output] { _ = fcntl(end.fileDescriptor, F_SETFL, O_NONBLOCK) }
        let page = [UInt8](repeating: 0x2E, count: 4096)
        while Glibc.write(output.fileDescriptor, page, page.count) > 0 {}
        _ = fcntl(output.fileDescriptor, F_SETFL, 0)
        let fixture = try Fixture(Self.disk)
        try fixture.begin(log: log)
        var text = ""
        try waitUntil("what was lost") {
            fixture.signal(SIGHUP)
            var block = [UInt8](repeating: 0, count: 1 << 16)
            let count = read(input.fileDescriptor, &block, block.count)
            text += String(decoding: block.prefix(max(0, count)), as: UTF8.self)
            return text.contains("log lines lost")
        }
        #expect(try fixture.stop() == 0)
    }
}
