// The real program on a disk that fails and comes back, by a library that stands before the system calls.
import Foundation
import Queue
import SQLite
import Streams
import Support
import Testing

@Suite struct DiskSystemTests {
    /// What is made to fail, as `errno` values; see Tests/FieldFaults.
    struct Fault: Sendable, CustomTestStringConvertible {
        var name: String
        var write: Int64
        var sync: Int64
        var naming: Int64
        var code: String?
        var testDescription: String { name }
    }

    static let faults = [
        Fault(name: "EIO", write: Int64(EIO), sync: Int64(EIO), naming: 0),
        Fault(name: "EIO at fsync alone", write: 0, sync: Int64(EIO), naming: 0),
        Fault(name: "EROFS", write: Int64(EROFS), sync: 0, naming: Int64(EROFS)),
        Fault(name: "ENOSPC", write: Int64(ENOSPC), sync: 0, naming: Int64(ENOSPC), code: "E004"),
    ]

    /// A daemon with a receiver that tells ten positions a second, on a disk that fails on demand.
    fileprivate final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        fileprivate let daemon = Process()
        private let receiver = Process()
        private let control: FileHandle
        fileprivate let manager: ServiceManagerSocket

        init() throws {
            try FileManager.default.createDirectory(
                atPath: temporary.path + "/state",
                withIntermediateDirectories: true
            )
            manager = try ServiceManagerSocket(folder: temporary.path, interval: .seconds(1))
            let root = Tree.root.path
            let library = temporary.path + "/faults.so"
            try #require(
                try Process.run(
                    "/usr/bin/env",
                    [
                        "cc", "-shared", "-fPIC", "-O1", "-o", library,
                        "\(root)/Tests/FieldFaults/fieldfaults.c", "-ldl", "-lpthread",
                    ]
                ).status == 0
            )
            try Data(count: 64).write(to: URL(fileURLWithPath: temporary.path + "/control"))
            control = try #require(FileHandle(forUpdatingAtPath: temporary.path + "/control"))
            let output = Pipe()
            receiver.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            receiver.arguments = [
                "python3", "-c",
                """
                import sys
                sys.path.insert(0, sys.argv[1])
                from gpsd import Walk
                print(Walk().address, flush=True)
                sys.stdin.read()
                """, "\(root)/Tests/Torture",
            ]
            receiver.standardInput = Pipe()
            receiver.standardOutput = output
            try receiver.run()
            let address = String(
                decoding: output.fileHandleForReading.availableData,
                as: UTF8.self
            ).trimmingCharacters(in: .whitespacesAndNewlines)
            try """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            [beacons]
            enabled = false
            [audio]
            enabled = false
            [location]
            gpsd = "\(address)"
            interval = "100ms"
            [storage]
            commit_interval = "100ms"
            """.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
            daemon.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            daemon.arguments = ["run", "--config", folder + "/waypost.toml"]
            daemon.standardError = FileHandle.nullDevice
            daemon.environment = ProcessInfo.processInfo.environment.merging([
                "LD_PRELOAD": library, "FIELDFAULTS_DIR": folder + "/state",
                "FIELDFAULTS_CONTROL": folder + "/control",
            ]) { $1 }.merging(manager.environment) { $1 }
        }

        deinit {
            if daemon.isRunning { kill(daemon.processIdentifier, SIGKILL) }
            if receiver.isRunning { kill(receiver.processIdentifier, SIGKILL) }
        }

        func start() throws { try daemon.run() }

        var isRunning: Bool { daemon.isRunning }

        func fail(_ fault: Fault?) throws {
            let numbers: [Int64] = [fault?.write ?? 0, fault?.sync ?? 0, fault?.naming ?? 0]
            try control.seek(toOffset: 0)
            try control.write(contentsOf: numbers.withUnsafeBytes { Data($0) })
        }

        func stop() -> Int32 {
            daemon.terminate()
            daemon.waitUntilExit()
            return daemon.terminationStatus
        }

        func status() throws -> [String: Any] {
            let text = try Process.run(
                Tree.program("waypost"),
                [
                    "status", "--json", "--config", folder + "/waypost.toml",
                ]
            ).output
            let object = try? JSONSerialization.jsonObject(with: Data(text.utf8))
            return object as? [String: Any] ?? [:]
        }
    }

    private func storage(_ status: [String: Any]) -> String? {
        (status["storage"] as? [String: Any])?["state"] as? String
    }

    private func fixes(_ status: [String: Any]) -> Int {
        let sources = status["sources"] as? [String: [String: Any]]
        return sources?["location"]?["records"] as? Int ?? 0
    }

    private func codes(_ status: [String: Any]) -> [String] {
        let errors = status["recent_errors"] as? [[String: Any]] ?? []
        return errors.compactMap { $0["code"] as? String }
    }

    @Test(arguments: faults)
    func failingDisk_isTold_andNothingIsLostOnceItIsBack(_ fault: Fault) throws {
        let bench = try Bench()
        try bench.start()
        try waitUntil("fixes") { try fixes(bench.status()) > 3 }
        try bench.fail(fault)
        try waitUntil("the failure in status") { try storage(bench.status()) == "error" }
        let before = fixes(try bench.status())
        let signs = bench.manager.signsOfLife
        // Long enough for the queue to open its database again: 80 positions are eight seconds.
        try waitUntil("collecting on") { try fixes(bench.status()) > before + 80 }
        // A restart by the watchdog would lose what waits in memory.
        try waitUntil("signs of life") { bench.manager.signsOfLife >= signs + 4 }
        #expect(bench.isRunning)
        let status = try bench.status()
        #expect(status["state"] as? String == "critical")
        if let code = fault.code { #expect(codes(status).contains(code)) }
        try bench.fail(nil)
        try waitUntil("recovery without a restart") { try storage(bench.status()) == "ok" }
        #expect(bench.stop() == 0)

        let last = fixes(try bench.status())
        let database = try Connection(path: bench.folder + "/state/queue.sqlite", access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(last))
        #expect(try database.integer("SELECT max(id) FROM location") == Int64(last))
        #expect(try database.integer("SELECT count(*) FROM losses") == 0)
    }

    @Test func diskThatTakesNothingAtTheStart_isWaitedFor() throws {
        let bench = try Bench()
        let fault = Self.faults[3]
        try bench.start()
        try waitUntil("fixes") { try fixes(bench.status()) > 3 }
        #expect(bench.stop() == 0)
        let known = fixes(try bench.status())

        let again = bench
        try again.fail(fault)
        let second = try again.startAgain()
        defer { if second.isRunning { kill(second.processIdentifier, SIGKILL) } }
        try waitUntil("collecting without a disk") {
            let status = try again.status()
            return storage(status) == "error" && fixes(status) > 10
        }
        try again.fail(nil)
        try waitUntil("recovery") { try storage(again.status()) == "ok" }
        second.terminate()
        second.waitUntilExit()
        #expect(second.terminationStatus == 0)
        let last = fixes(try again.status())
        let database = try Connection(path: bench.folder + "/state/queue.sqlite", access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(known + last))
    }
}

extension DiskSystemTests.Bench {
    /// Another daemon on the same directories; a Process runs once.
    fileprivate func startAgain() throws -> Process {
        let second = Process()
        second.executableURL = daemon.executableURL
        second.arguments = daemon.arguments
        second.environment = daemon.environment
        second.standardError = FileHandle.nullDevice
        try second.run()
        return second
    }
}
