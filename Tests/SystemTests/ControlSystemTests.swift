// The real program's control socket: with a hang, many clients, or without permission.
import Foundation
import Support
import Testing

@Suite struct ControlSystemTests {
    /// A gateway without devices, whose status other users may read.
    private final class Bench: Device {
        init() throws {
            try super.init()
            for path in [folder, config] { chmod(path, 0o755) }
            try start()
        }

        func report(_ text: String) throws -> [String: Any] {
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
        }

        func isRunning(_ text: String) throws -> Bool? {
            (try report(text)["daemon"] as? [String: Any])?["running"] as? Bool
        }

        /// Connects without sending anything; `watching`: sends only a watch request.
        func connect(watching: Bool = false) -> Int32 {
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
            let request = Array("{\"command\": \"watch\"}\n".utf8)
            if watching { #expect(send(number, request, request.count, 0) == request.count) }
            return number
        }

        /// Another program holds the database until the result is released: the writer cannot
        /// write.
        func holdDatabase() throws -> Pipe {
            let script = """
                import sqlite3, sys
                db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
                db.execute("BEGIN IMMEDIATE")
                print("held", flush=True)
                sys.stdin.read()
                """
            let (input, output) = (Pipe(), Pipe())
            children.append(
                try .started(
                    "/usr/bin/python3",
                    ["-c", script, folder + "/state/queue.sqlite"],
                    input: input,
                    output: output
                )
            )
            #expect(!output.fileHandleForReading.availableData.isEmpty)
            return input
        }

        /// Runs `status --json` as a user without any rights; `variables`: its whole environment.
        func statusOfNobody(_ variables: [String: String]) throws -> Outcome {
            try Process.run(
                "/usr/bin/env",
                ["-i"] + variables.map { "\($0)=\($1)" }
                    + ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                    + [Tree.program("waypost"), "status", "--json", "--config", config]
            )
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

    @Test(.enabled(if: geteuid() == 0))
    func watchersOfOneUser_leaveRoomForAnother() throws {
        let bench = try Bench()
        for path in [bench.folder, bench.folder + "/run"] { chmod(path, 0o755) }
        chmod(bench.folder + "/run/control.sock", 0o666)
        let watching = (0..<300).map { _ in bench.connect(watching: true) }
        defer { for number in watching { close(number) } }
        var own = try bench.run("status", "--json")
        try waitUntil("the end of its share") {
            own = try bench.run("status", "--json")
            return own.error.contains("programs are being answered")
        }
        #expect(own.status == 2)
        #expect(try bench.isRunning(own.output) == true)
        let status = try bench.statusOfNobody([:])
        #expect(try bench.isRunning(status.output) == true)
        #expect(status.status != 2)
    }

    @Test func whileTheWriterHangs_andASurveyIsToStop_statusIsAnswered() throws {
        // SQLite's busy timeout is 5 s; the answer must come before, if the machine is not too
        // busy.
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
        bench.signal(SIGSTOP)
        let silent = try bench.run("status", "--json")
        bench.signal(SIGCONT)
        #expect(silent.status == 2)
        #expect(silent.error.contains("does not answer"))
        #expect(try bench.isRunning(silent.output) == true)

        bench.killDaemon()
        let dead = try bench.run("status", "--json")
        #expect(dead.status == 2)
        #expect(try bench.isRunning(dead.output) == false)
    }

    /// Status answers within a second; the limit allows for a busy machine, but not for the five
    /// seconds and more that these commands once took.
    @Test(arguments: [
        ["status", "--json"], ["sync"], ["quarantine", "list"], ["quarantine", "requeue", "all"],
        ["survey", "list"], ["restart", "audio"],
    ])
    func stoppedDaemon_keepsNobodyWaiting(command: [String]) throws {
        let bench = try Bench()
        bench.signal(SIGSTOP)
        defer { bench.signal(SIGCONT) }
        let error = Pipe()
        let process = try Process.started(
            Tree.program("waypost"),
            command + ["--config", bench.config],
            error: error
        )
        bench.children.append(process)
        try waitUntil("its end", limit: .seconds(4)) { !process.isRunning }
        #expect(process.terminationStatus == 2)
        let told = String(decoding: error.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(told.contains("does not answer"))
    }

    /// The screen shows it, and follows again when the daemon resumes.
    @Test func watch_noticesADaemonThatIsStopped() throws {
        let bench = try Bench()
        let (output, error) = (Pipe(), Pipe())
        let watch = try Process.started(
            Tree.program("waypost"),
            ["status", "--watch", "--json", "--config", bench.config],
            output: output,
            error: error
        )
        bench.children.append(watch)
        #expect(!output.fileHandleForReading.availableData.isEmpty)
        bench.signal(SIGSTOP)
        defer { bench.signal(SIGCONT) }
        var text = ""
        while !text.contains("does not answer") {
            text += String(decoding: error.fileHandleForReading.availableData, as: UTF8.self)
            try #require(watch.isRunning)
        }
        text = ""
        while !text.contains("daemon does not answer") {
            text += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            try #require(watch.isRunning)
        }
        bench.signal(SIGCONT)
        text = ""
        while !text.contains("\"running\":true") {
            text += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            try #require(watch.isRunning)
        }
        bench.killDaemon()
        try waitUntil("its end") { !watch.isRunning }
    }

    @Test(.enabled(if: geteuid() == 0))
    func whoMayNotReadTheConfiguration_isAnsweredByTheDaemonAllTheSame() throws {
        let bench = try Bench()
        chmod(bench.folder + "/waypost.toml", 0o600)
        chmod(bench.folder + "/run/control.sock", 0o666)
        for path in [bench.folder, bench.folder + "/run"] { chmod(path, 0o755) }
        let status = try bench.statusOfNobody(["RUNTIME_DIRECTORY": bench.folder + "/run"])
        #expect(status.status != 78)
        #expect(status.error.contains("may not read it"))
        #expect(try bench.isRunning(status.output) == true)
    }

    @Test(.enabled(if: geteuid() == 0))
    func whoHasNoRightToTheSocket_isToldSo() throws {
        let bench = try Bench()
        let status = try bench.statusOfNobody([:])
        #expect(status.status == 2)
        #expect(status.error.contains("group waypost"))
        #expect(try bench.isRunning(status.output) == true)
    }
}
