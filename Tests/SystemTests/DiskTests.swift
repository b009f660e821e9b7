// The real program on a disk that fails and recovers, simulated by a preloaded library.
import Foundation
import Queue
import Records
import SQLite
import Support
import Testing

@Suite struct DiskSystemTests {
    /// Calls that fail, as `errno` values; see Tests/FieldFaults.
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

    /// A daemon with ten positions per second, on a disk that fails on demand.
    private final class Bench: Device {
        private let control: FileHandle
        let manager: ServiceManagerSocket

        init() throws {
            let temporary = TemporaryFolder()
            manager = try ServiceManagerSocket(folder: temporary.path, interval: .seconds(1))
            try Data(count: 64).write(to: URL(fileURLWithPath: temporary.path + "/control"))
            control = try #require(FileHandle(forUpdatingAtPath: temporary.path + "/control"))
            try super.init(in: temporary)
            let files = FileManager.default
            try files.createDirectory(atPath: folder + "/state", withIntermediateDirectories: true)
            let source = Tree.path("Tests/FieldFaults/fieldfaults.c")
            environment = manager.environment.merging([
                "LD_PRELOAD": try library(source, to: "faults.so"),
                "FIELDFAULTS_DIR": folder + "/state",
                "FIELDFAULTS_CONTROL": folder + "/control",
            ]) { $1 }
            try configure(
                """
                [location]
                gpsd = "\(try startWalk())"
                interval = "100ms"
                [storage]
                commit_interval = "100ms"
                """
            )
        }

        /// A gpsd that sends ten positions per second; returns its address.
        private func startWalk() throws -> String {
            let script = """
                import sys
                sys.path.insert(0, sys.argv[1])
                from gpsd import Walk
                print(Walk().address, flush=True)
                sys.stdin.read()
                """
            let output = Pipe()
            children.append(
                try .started(
                    "/usr/bin/env",
                    ["python3", "-c", script, Tree.path("Tests/Torture")],
                    input: Pipe(),
                    output: output
                )
            )
            return "127.0.0.1:\(try output.number(after: ":"))"
        }

        func fail(_ fault: Fault?) throws {
            let numbers: [Int64] = [fault?.write ?? 0, fault?.sync ?? 0, fault?.naming ?? 0]
            try control.seek(toOffset: 0)
            try control.write(contentsOf: numbers.withUnsafeBytes { Data($0) })
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
        try bench.launch()
        try waitUntil("fixes") { try fixes(bench.status()) > 3 }
        try bench.fail(fault)
        try waitUntil("the failure in status") { try storage(bench.status()) == "error" }
        let before = fixes(try bench.status())
        let signs = bench.manager.signsOfLife
        // Long enough for the queue to reopen its database: 80 positions are eight seconds.
        try waitUntil("collecting on") { try fixes(bench.status()) > before + 80 }
        // A restart by the watchdog would lose the records in memory.
        try waitUntil("heartbeats") { bench.manager.signsOfLife >= signs + 4 }
        #expect(bench.isRunning)
        let status = try bench.status()
        #expect(status["state"] as? String == "critical")
        if let code = fault.code { #expect(codes(status).contains(code)) }
        try bench.fail(nil)
        try waitUntil("recovery without a restart") { try storage(bench.status()) == "ok" }
        #expect(try bench.stop() == 0)

        let last = fixes(try bench.status())
        let database = try Connection(path: bench.folder + "/state/queue.sqlite", access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(last))
        #expect(try database.integer("SELECT max(id) FROM location") == Int64(last))
        #expect(try database.integer("SELECT count(*) FROM losses") == 0)
    }

    @Test func diskThatTakesNothingAtTheStart_isWaitedFor() throws {
        let bench = try Bench()
        let fault = Self.faults[3]
        try bench.launch()
        try waitUntil("fixes") { try fixes(bench.status()) > 3 }
        #expect(try bench.stop() == 0)

        try bench.fail(fault)
        try bench.launch()
        try waitUntil("collecting without a disk") {
            let status = try bench.status()
            return storage(status) == "error" && fixes(status) > 10
        }
        try bench.fail(nil)
        try waitUntil("recovery") { try storage(bench.status()) == "ok" }
        #expect(try bench.stop() == 0)
        let last = fixes(try bench.status())
        let database = try Connection(path: bench.folder + "/state/queue.sqlite", access: .readOnly)
        // The count continues over both starts.
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(last))
    }

    /// Records that wait in memory for the disk are lost with the program, and so are their loss
    /// counts.
    @Test func crashWhileTheDiskRefuses_isCountedByTheNextStart() throws {
        let bench = try Bench()
        try bench.launch()
        try waitUntil("fixes") { try fixes(bench.status()) > 3 }
        try bench.fail(Self.faults[3])
        try waitUntil("the failure in status") { try storage(bench.status()) == "error" }
        let before = fixes(try bench.status())
        try waitUntil("collecting on") { try fixes(bench.status()) > before + 30 }
        let signs = bench.manager.signsOfLife
        try waitUntil("two ticks") { bench.manager.signsOfLife >= signs + 2 }
        bench.killDaemon()

        // The program starts and is killed once more before the disk is back.
        let later = bench.manager.signsOfLife
        try bench.launch()
        try waitUntil("two ticks") { bench.manager.signsOfLife >= later + 2 }
        #expect(try storage(bench.status()) == "error")
        bench.killDaemon()
        try bench.fail(nil)
        try bench.launch()
        try waitUntil("collecting") { try storage(bench.status()) == "ok" }
        #expect(try bench.stop() == 0)
        let path = bench.folder + "/state/queue.sqlite"
        let database = try Connection(path: path, access: .readOnly)
        let lost = "SELECT sum(records) FROM losses WHERE kind='dropped' AND stream=?"
        let count = try database.integer(lost, Int64(Stream.location.number)) ?? 0
        #expect(count > 40)
    }
}
