// The real program's control socket: with a hang, many clients, or without permission.
import Foundation
import Support
import Testing

@Suite struct ControlSystemTests {
    /// A gateway without devices, whose status other users may read.
    private final class Fixture: Device {
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
        let fixture = try Fixture()
        let idle = (0..<220).map { _ in fixture.connect() }
        defer { for number in idle { close(number) } }
        let status = try fixture.run("status", "--json")
        #expect(status.status != 2)
        #expect(try fixture.isRunning(status.output) == true)
    }

    @Test(.enabled(if: geteuid() == 0))
    func watchersOfOneUser_leaveRoomForAnother() throws {
        let fixture = try Fixture()
        for path in [fixture.folder, fixture.folder + "/run"] { chmod(path, 0o755) }
        chmod(fixture.folder + "/run/control.sock", 0o666)
        let watching = (0..<300).map { _ in fixture.connect(watching: true) }
        defer { for number in watching { close(number) } }
        var own = try fixture.run("status", "--json")
        try waitUntil("the end of its share") {
            own = try fixture.run("status", "--json")
            return own.error.contains("programs are being answered")
        }
        #expect(own.status == 2)
        #expect(try fixture.isRunning(own.output) == true)
        let status = try fixture.statusOfNobody([:])
        #expect(try fixture.isRunning(status.output) == true)
        #expect(status.status != 2)
    }

    @Test func status_isAnswered_whileWriterHangsDuringSurveyStop() throws {
        // SQLite's busy timeout is 5 s; the answer must come before, if the machine is not too
        // busy.
        for _ in 0..<10 {
            let fixture = try Fixture()
            #expect(try fixture.run("survey", "start", "field").status == 0)
            let holder = try fixture.holdDatabase()
            let stop = try fixture.begin("survey", "stop")
            let status = try fixture.run("status", "--json")
            let isInTime = stop.isRunning
            #expect(try fixture.isRunning(status.output) == true)
            try holder.fileHandleForWriting.close()
            guard isInTime else { continue }
            try waitUntil("the survey's end") {
                try !fixture.run("survey", "list", "--json").output.contains(#""surveys":[]"#)
                    || fixture.run("survey", "stop").status == 0
            }
            return
        }
        Issue.record("no status was answered while a survey stop waited")
    }

    @Test func aDaemonThatDoesNotAnswer_isNotCalledDead() throws {
        let fixture = try Fixture()
        fixture.signal(SIGSTOP)
        let silent = try fixture.run("status", "--json")
        fixture.signal(SIGCONT)
        #expect(silent.status == 2)
        #expect(silent.error.contains("does not answer"))
        #expect(try fixture.isRunning(silent.output) == true)

        fixture.killDaemon()
        let dead = try fixture.run("status", "--json")
        #expect(dead.status == 2)
        #expect(try fixture.isRunning(dead.output) == false)
    }

    /// Status answers within a second; the limit allows for a busy machine, but not for the five
    /// seconds and more that these commands once took.
    @Test(arguments: [
        ["status", "--json"], ["sync"], ["quarantine", "list"], ["quarantine", "requeue", "all"],
        ["survey", "list"], ["restart", "audio"],
    ])
    func stoppedDaemon_keepsNobodyWaiting(command: [String]) throws {
        let fixture = try Fixture()
        fixture.signal(SIGSTOP)
        defer { fixture.signal(SIGCONT) }
        let error = Pipe()
        let process = try Process.started(
            Tree.program("waypost"),
            command + ["--config", fixture.config],
            error: error
        )
        fixture.children.append(process)
        try waitUntil("its end", limit: .seconds(4)) { !process.isRunning }
        #expect(process.terminationStatus == 2)
        let reported = String(
            decoding: error.fileHandleForReading.readDataToEndOfFile(),
            as: UTF8.self
        )
        #expect(reported.contains("does not answer"))
    }

    /// The screen shows it, and follows again when the daemon resumes.
    @Test func watch_noticesADaemonThatIsStopped() throws {
        let fixture = try Fixture()
        let (output, error) = (Pipe(), Pipe())
        let watch = try Process.started(
            Tree.program("waypost"),
            ["status", "--watch", "--json", "--config", fixture.config],
            output: output,
            error: error
        )
        fixture.children.append(watch)
        #expect(!output.fileHandleForReading.availableData.isEmpty)
        fixture.signal(SIGSTOP)
        defer { fixture.signal(SIGCONT) }
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
        fixture.signal(SIGCONT)
        text = ""
        while !text.contains("\"running\":true") {
            text += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            try #require(watch.isRunning)
        }
        fixture.killDaemon()
        try waitUntil("its end") { !watch.isRunning }
    }

    @Test(.enabled(if: geteuid() == 0))
    func status_worksWithUnreadableConfiguration() throws {
        let fixture = try Fixture()
        chmod(fixture.folder + "/waypost.toml", 0o600)
        chmod(fixture.folder + "/run/control.sock", 0o666)
        for path in [fixture.folder, fixture.folder + "/run"] { chmod(path, 0o755) }
        let status = try fixture.statusOfNobody(["RUNTIME_DIRECTORY": fixture.folder + "/run"])
        #expect(status.status != 78)
        #expect(status.error.contains("may not read it"))
        #expect(try fixture.isRunning(status.output) == true)
    }

    @Test(.enabled(if: geteuid() == 0))
    func missingSocketPermission_isReported() throws {
        let fixture = try Fixture()
        let status = try fixture.statusOfNobody([:])
        #expect(status.status == 2)
        #expect(status.error.contains("group waypost"))
        #expect(try fixture.isRunning(status.output) == true)
    }
}
