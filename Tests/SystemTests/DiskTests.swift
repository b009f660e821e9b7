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
    private final class Fixture: Device {
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
    func failingDisk_isReported_andNothingIsLost(_ fault: Fault) throws {
        let fixture = try Fixture()
        try fixture.launch()
        try waitUntil("fixes") { try fixes(fixture.status()) > 3 }
        try fixture.fail(fault)
        try waitUntil("the failure in status") { try storage(fixture.status()) == "error" }
        let before = fixes(try fixture.status())
        let signs = fixture.manager.signsOfLife
        // Long enough for the queue to reopen its database: 80 positions are eight seconds.
        try waitUntil("collecting on") { try fixes(fixture.status()) > before + 80 }
        // A restart by the watchdog would lose the records in memory.
        try waitUntil("heartbeats") { fixture.manager.signsOfLife >= signs + 4 }
        #expect(fixture.isRunning)
        let status = try fixture.status()
        #expect(status["state"] as? String == "critical")
        if let code = fault.code { #expect(codes(status).contains(code)) }
        try fixture.fail(nil)
        try waitUntil("recovery without a restart") { try storage(fixture.status()) == "ok" }
        #expect(try fixture.stop() == 0)

        let last = fixes(try fixture.status())
        let database = try Connection(
            path: fixture.folder + "/state/queue.sqlite",
            access: .readOnly
        )
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(last))
        #expect(try database.integer("SELECT max(id) FROM location") == Int64(last))
        #expect(try database.integer("SELECT count(*) FROM losses") == 0)
    }

    @Test func diskThatTakesNothingAtTheStart_isWaitedFor() throws {
        let fixture = try Fixture()
        let fault = Self.faults[3]
        try fixture.launch()
        try waitUntil("fixes") { try fixes(fixture.status()) > 3 }
        #expect(try fixture.stop() == 0)

        try fixture.fail(fault)
        try fixture.launch()
        try waitUntil("collecting without a disk") {
            let status = try fixture.status()
            return storage(status) == "error" && fixes(status) > 10
        }
        try fixture.fail(nil)
        try waitUntil("recovery") { try storage(fixture.status()) == "ok" }
        #expect(try fixture.stop() == 0)
        let last = fixes(try fixture.status())
        let database = try Connection(
            path: fixture.folder + "/state/queue.sqlite",
            access: .readOnly
        )
        // The count continues over both starts.
        #expect(try database.integer("SELECT count(*) FROM location") == Int64(last))
    }

    /// Records that wait in memory for the disk are lost with the program, and so are their loss
    /// counts.
    @Test func crashWhileTheDiskRefuses_isCountedByTheNextStart() throws {
        let fixture = try Fixture()
        try fixture.launch()
        try waitUntil("fixes") { try fixes(fixture.status()) > 3 }
        try fixture.fail(Self.faults[3])
        try waitUntil("the failure in status") { try storage(fixture.status()) == "error" }
        let before = fixes(try fixture.status())
        try waitUntil("collecting on") { try fixes(fixture.status()) > before + 30 }
        let signs = fixture.manager.signsOfLife
        try waitUntil("two ticks") { fixture.manager.signsOfLife >= signs + 2 }
        fixture.killDaemon()

        // The program starts and is killed once more before the disk is back.
        let later = fixture.manager.signsOfLife
        try fixture.launch()
        try waitUntil("two ticks") { fixture.manager.signsOfLife >= later + 2 }
        #expect(try storage(fixture.status()) == "error")
        fixture.killDaemon()
        try fixture.fail(nil)
        try fixture.launch()
        try waitUntil("collecting") { try storage(fixture.status()) == "ok" }
        #expect(try fixture.stop() == 0)
        let path = fixture.folder + "/state/queue.sqlite"
        let database = try Connection(path: path, access: .readOnly)
        let lost = "SELECT sum(records) FROM losses WHERE kind='dropped' AND stream=?"
        let count = try database.integer(lost, Int64(Stream.location.number)) ?? 0
        #expect(count > 40)
    }
}
