// The control socket of the real program while something hangs, is crowded, or may not be asked.
import Foundation
import Support
import Testing

@Suite struct ControlSystemTests {
    /// A gateway without devices.
    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        private(set) var daemon = Process()
        var children: [Process] = []

        init(_ more: String = "") throws {
            let files = FileManager.default
            let text = """
                state_directory = "\(folder)/state"
                runtime_directory = "\(folder)/run"
                [upload]
                required = false
                \(more)
                [beacons]
                enabled = false
                [location]
                enabled = false
                [audio]
                enabled = false

                """
            let path = folder + "/waypost.toml"
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            // For another user, too: none of it is a secret.
            for path in [folder, path] {
                try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
            }
            daemon.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            daemon.arguments = ["run", "--config", path]
            daemon.standardError = FileHandle.nullDevice
            try daemon.run()
            try waitUntil("the daemon runs") { try run("status", "--json").status != 2 }
        }

        deinit {
            for child in children + [daemon] where child.isRunning {
                kill(child.processIdentifier, SIGKILL)
            }
        }

        func run(_ arguments: String...) throws -> Outcome {
            try Process.run(
                Tree.program("waypost"),
                arguments + ["--config", folder + "/waypost.toml"]
            )
        }

        /// Starts a command and does not wait for it.
        func begin(_ arguments: String...) throws -> Process {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            process.arguments = arguments + ["--config", folder + "/waypost.toml"]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            children.append(process)
            return process
        }

        func report(_ text: String) throws -> [String: Any] {
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
        }

        func isRunning(_ text: String) throws -> Bool? {
            (try report(text)["daemon"] as? [String: Any])?["running"] as? Bool
        }

        /// A connection that says nothing.
        func connect() -> Int32 {
            let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let path = folder + "/run/control.sock"
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let size = socklen_t(MemoryLayout<sockaddr_un>.size)
            let code = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(number, $0, size)
                }
            }
            #expect(code == 0)
            return number
        }

        /// Another program holds the database as long as the result lives: the writer cannot write.
        func holdDatabase() throws -> Pipe {
            let holder = Process()
            holder.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            let script = """
                import sqlite3, sys
                db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
                db.execute("BEGIN IMMEDIATE")
                print("held", flush=True)
                sys.stdin.read()
                """
            holder.arguments = ["-c", script, folder + "/state/queue.sqlite"]
            let (input, output) = (Pipe(), Pipe())
            holder.standardInput = input
            holder.standardOutput = output
            try holder.run()
            children.append(holder)
            #expect(!output.fileHandleForReading.availableData.isEmpty)
            return input
        }
    }

    @Test func twoHundredIdleClients_leaveRoomForStatus() throws {
        let bench = try Bench()
        let idle = (0..<220).map { _ in bench.connect() }
        defer { for number in idle { close(number) } }
        let status = try bench.run("status", "--json")
        #expect(status.status != 2)
        #expect(try bench.isRunning(status.output) == true)
    }

    @Test func whileTheWriterHangs_andASurveyIsToStop_statusIsAnswered() throws {
        // SQLite gives up waiting after 5 s; the answer has to come while it waits, if the machine has a moment.
        for _ in 0..<10 {
            let bench = try Bench()
            #expect(try bench.run("survey", "start", "field").status == 0)
            let holder = try bench.holdDatabase()
            let stop = try bench.begin("survey", "stop")
            let status = try bench.run("status", "--json")
            let isInTime = stop.isRunning
            #expect(try bench.isRunning(status.output) == true)
            try holder.fileHandleForWriting.close()
            guard isInTime else { continue }
            try waitUntil("the survey's end") {
                try !bench.run("survey", "list", "--json").output.contains(#""surveys":[]"#)
                    || bench.run("survey", "stop").status == 0
            }
            return
        }
        Issue.record("no status was answered while a survey stop waited")
    }

    @Test func aDaemonThatDoesNotAnswer_isNotCalledDead() throws {
        let bench = try Bench()
        let pid = bench.daemon.processIdentifier
        kill(pid, SIGSTOP)
        let silent = try bench.run("status", "--json")
        kill(pid, SIGCONT)
        #expect(silent.status == 2)
        #expect(silent.error.contains("does not answer"))
        #expect(try bench.isRunning(silent.output) == true)

        kill(pid, SIGKILL)
        bench.daemon.waitUntilExit()
        let dead = try bench.run("status", "--json")
        #expect(dead.status == 2)
        #expect(try bench.isRunning(dead.output) == false)
    }

    @Test(.enabled(if: geteuid() == 0))
    func whoMayNotReadTheConfiguration_isAnsweredByTheDaemonAllTheSame() throws {
        let bench = try Bench()
        chmod(bench.folder + "/waypost.toml", 0o600)
        chmod(bench.folder + "/run/control.sock", 0o666)
        for path in [bench.folder, bench.folder + "/run"] { chmod(path, 0o755) }
        let (output, error) = (Pipe(), Pipe())
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        process.arguments =
            ["--reuid=65534", "--regid=65534", "--clear-groups", Tree.program("waypost")]
            + ["status", "--json", "--config", bench.folder + "/waypost.toml"]
        process.environment = ["RUNTIME_DIRECTORY": bench.folder + "/run"]
        process.standardOutput = output
        process.standardError = error
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let words = error.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus != 78)
        #expect(String(decoding: words, as: UTF8.self).contains("may not read it"))
        #expect(try bench.isRunning(String(decoding: text, as: UTF8.self)) == true)
    }

    @Test(.enabled(if: geteuid() == 0))
    func whoHasNoRightToTheSocket_isToldSo() throws {
        let bench = try Bench()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        process.arguments =
            ["--reuid=65534", "--regid=65534", "--clear-groups", Tree.program("waypost")]
            + ["status", "--json", "--config", bench.folder + "/waypost.toml"]
        let (output, error) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = error
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let words = error.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 2)
        #expect(String(decoding: words, as: UTF8.self).contains("group waypost"))
        #expect(try bench.isRunning(String(decoding: text, as: UTF8.self)) == true)
    }
}
