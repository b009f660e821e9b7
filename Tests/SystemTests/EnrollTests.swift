// `waypost enroll`, and a gateway that waits for its endpoint: files written, and collecting.
import Foundation
import Support
import Testing

@Suite struct EnrollTests {
    /// A server that knows one token, and gives it for one code.
    private static let server = """
        import http.server, json, sys, time
        codes = {"once"}
        mode, _, asked = sys.argv[1].partition(":")
        portal = mode == "portal"
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_POST(self):
                global portal
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = 200, {"ok": True}
                if self.path.endswith("/enroll"):
                    code = json.loads(body)["code"]
                    if code in codes: answer = {"token": "good-token"}
                    else: status = 403
                    codes.discard(code)
                elif self.path.endswith("/verify") and mode == "mute": status = 404
                elif self.path.endswith("/verify") and portal:
                    status, portal = 503, False
                elif self.path.endswith("/verify") and mode == "silent":
                    open(asked, "w").close()
                    time.sleep(3600)
                elif self.headers.get("X-Device-Token") != "good-token": status = 401
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    private final class Bench: Device {
        private let server: StubServer
        var endpoint: String { "http://127.0.0.1:\(server.port)/api/ingest" }

        /// `mode` of the server: `mute` cannot verify devices, `silent` answers nothing, and with
        /// `portal` another server answers the first verification.
        init(_ mode: String = "") throws {
            let temporary = TemporaryFolder()
            server = try StubServer(EnrollTests.server, "\(mode):\(temporary.path)/asked")
            try super.init(in: temporary)
            try collect("")
        }

        deinit { server.stop() }

        /// A source that fails as soon as it may collect.
        func collect(_ upload: String) throws {
            try write(
                """
                # mine
                state_directory = "\(folder)/state"
                runtime_directory = "\(folder)/run"
                [beacons]
                enabled = false
                [location]
                enabled = false
                [audio]
                device = "hw:CARD=nosuchdevice"
                \(upload)

                """,
                "waypost.toml"
            )
        }

        /// Returns the text that `enroll` stores for the token `secret`, with its server.
        func bound(_ secret: String) -> String {
            "\(secret)\n# for \(endpoint.dropLast("/api/ingest".count))\n"
        }

        func text(_ name: String) throws -> String {
            try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
        }

        func startDaemon() throws {
            try launch()
            try waitUntil("the daemon runs") { try ![nil, "unknown"].contains(sound()?.state) }
        }

        func stopServer() { server.stop() }

        func enroll(_ file: String) throws -> Outcome {
            let file = folder + "/" + file
            return try run("enroll", "--endpoint", endpoint, "--token-file", file)
        }

        func reasons() throws -> [String] { try status()["reasons"] as? [String] ?? [] }

        /// State and reason of the source, as the daemon reports them.
        func sound() throws -> (state: String, reason: String)? {
            let report = try status()
            guard (report["daemon"] as? [String: Any])?["running"] as? Bool == true,
                let source = (report["sources"] as? [String: [String: Any]])?["audio"],
                let state = source["state"] as? String
            else { return nil }
            return (state, source["reason"] as? String ?? "")
        }
    }

    @Test func enrolment_isWrittenDown_andLetsTheGatewayCollectWithoutItsServer() throws {
        let bench = try Bench()
        try bench.write("good-token\n", "given")
        let done = try bench.enroll("given")
        #expect(done.status == 0, "\(done.error)")
        #expect(done.output.contains("the server accepts this device"))
        let configuration = try bench.text("waypost.toml")
        #expect(configuration.hasPrefix("# mine\n"))
        #expect(configuration.contains("endpoint = \"\(bench.endpoint)\""))
        #expect(try bench.run("config", "check").status == 0)
        let files = FileManager.default
        let token = try files.attributesOfItem(atPath: bench.folder + "/token")
        #expect(token[.posixPermissions] as? Int == 0o600)
        #expect(try bench.text("state/enrolled") == bench.endpoint + "\n")
        bench.stopServer()
        try bench.startDaemon()
        try waitUntil("collecting") { try bench.sound()?.state == "error" }
    }

    @Test func refusedToken_changesNothing() throws {
        let bench = try Bench()
        let before = try bench.text("waypost.toml")
        try bench.write("bad-token", "given")
        let refused = try bench.enroll("given")
        #expect(refused.status == 2)
        #expect(refused.error.contains("E002"))
        #expect(try bench.text("waypost.toml") == before)
        #expect(!FileManager.default.fileExists(atPath: bench.folder + "/state/enrolled"))
        let plain = try bench.run("enroll", "--endpoint", "http://example.org/", "--code", "x")
        #expect(plain.status == 78)
        #expect(plain.error.contains("--allow-plaintext"), "\(plain.error)")
    }

    @Test func configurationNamedFromItsFolder_getsATokenBesideIt() throws {
        let bench = try Bench()
        try bench.write("good-token\n", "given")
        let arguments = ["--token-file", "given", "--config", "waypost.toml"]
        let done = try Process.run(
            "/usr/bin/env",
            ["-C", bench.folder, Tree.program("waypost"), "enroll", "--endpoint", bench.endpoint]
                + arguments
        )
        #expect(done.status == 0, "\(done.error)")
        #expect(try bench.text("waypost.toml").contains("\"\(bench.folder)/token\""))
        #expect(try bench.text("token") == bench.bound("good-token"))
    }

    @Test(.enabled(if: geteuid() == 0))
    func whoForgetsSudo_isToldThat() throws {
        let bench = try Bench()
        try bench.write("good-token\n", "given", mode: 0o644)
        for path in [bench.folder, bench.config] { chmod(path, 0o755) }
        let refused = try Process.run(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", Tree.program("waypost"), "enroll"]
                + ["--endpoint", bench.endpoint, "--token-file", bench.folder + "/given"]
                + ["--config", bench.config]
        )
        #expect(refused.status == 2)
        #expect(refused.error.contains("`sudo waypost enroll` may"))
        #expect(!refused.error.contains("chown"))
    }

    /// Keys can be written in many ways; an error would name a line that the file does not have.
    @Test(arguments: [
        ("upload.interval = \"1h\"", 0), ("upload = { interval = \"1h\" }", 2),
        ("[\"upload\"]\ninterval = \"1h\"", 2),
    ])
    func fileInAnotherForm_isWritten_orLeftWithTheNextStep(text: String, status: Int) throws {
        let bench = try Bench()
        try bench.write("good-token", "given")
        let places = "state_directory = \"\(bench.folder)/state\"\n"
        try bench.write("\(places)\(text)\n", "waypost.toml")
        let done = try bench.enroll("given")
        #expect(Int(done.status) == status, "\(done.error)")
        let step = "set upload.endpoint and upload.token_file there"
        #expect(done.error.isEmpty || done.error.contains(step))
        #expect(try bench.text("waypost.toml").contains(bench.endpoint) == (status == 0))
        #expect(try bench.run("config", "check").status == 0)
    }

    @Test func code_isGoodOnce() throws {
        let bench = try Bench()
        let first = try bench.run("enroll", "--endpoint", bench.endpoint, "--code", "once")
        #expect(first.status == 0, "\(first.error)")
        #expect(try bench.text("token") == bench.bound("good-token"))
        #expect(try bench.text("state/enrolled") == bench.endpoint + "\n")
        let second = try bench.run("enroll", "--endpoint", bench.endpoint, "--code", "once")
        #expect(second.status == 2)
        #expect(second.error.contains("code"))
    }

    /// The network fails between the exchange and the verification.
    @Test func codeWhoseTokenCannotBeTried_isGoodForTheSameCommand_andChangesNothingMeanwhile()
        throws
    {
        let bench = try Bench("portal")
        try bench.write("of-another-server\n", "token", mode: 0o600)
        try bench.collect(
            "[upload]\nendpoint = \"http://127.0.0.1:1/x\"\ntoken_file = \"\(bench.folder)/token\""
        )
        let before = try bench.text("waypost.toml")
        let first = try bench.run("enroll", "--endpoint", bench.endpoint, "--code", "once")
        #expect(first.status == 2)
        #expect(first.error.contains("the same command"))
        #expect(try bench.text("token") == "of-another-server\n")
        #expect(try bench.text("waypost.toml") == before)
        let second = try bench.run("enroll", "--endpoint", bench.endpoint, "--code", "once")
        #expect(second.status == 0, "\(second.error)")
        #expect(try bench.text("token") == bench.bound("good-token"))
        #expect(!FileManager.default.fileExists(atPath: bench.folder + "/state/asked-token"))
    }

    @Test func anotherEndpoint_isNotTheOneThatAcceptedTheDevice() throws {
        let bench = try Bench()
        try bench.write("good-token", "token", mode: 0o600)
        try bench.collect(
            "[upload]\nendpoint = \"http://127.0.0.1:1/x\"\ntoken_file = \"\(bench.folder)/token\""
        )
        let state = bench.folder + "/state"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        try bench.write(bench.endpoint + "\n", "state/enrolled")
        try bench.startDaemon()
        let sound = try bench.sound()
        #expect(sound?.state == "disabled")
        #expect(sound?.reason == "waiting for the server to accept this device")
        // A gateway that may not collect is not healthy.
        let why = "nothing is collected: waiting for the server to accept this device"
        #expect(try bench.reasons().contains(why))
        // The command makes the running gateway reload.
        let done = try bench.enroll("token")
        #expect(done.status == 0, "\(done.error)")
        try waitUntil("collecting") { try bench.sound()?.state == "error" }
        #expect(try !bench.reasons().contains(why))
    }

    /// They waited for the next interval, up to five minutes, and nobody said so.
    @Test func deviceThatWasEnrolled_sendsItsFirstDataAtOnce() throws {
        let bench = try Bench()
        try bench.write("good-token", "given")
        try bench.collect("[upload]\ninterval = \"1h\"")
        try bench.launch(["--patience", "2"])
        try waitUntil("the daemon") { try bench.sound()?.state == "disabled" }
        let done = try bench.enroll("given")
        #expect(done.output.contains("sends its first data within a minute"), "\(done.output)")
        try waitUntil("its first health record") {
            try bench.stream("waypost_health")["uploaded"] as? Int ?? 0 > 0
        }
        #expect(try bench.stop() == 0)
    }

    @Test func serverThatCannotBeAsked_enrolsByTheFirstEventsItAccepts() throws {
        let bench = try Bench("mute")
        try bench.write("good-token", "token", mode: 0o600)
        try bench.collect(
            """
            [upload]
            endpoint = "\(bench.endpoint)"
            token_file = "\(bench.folder)/token"
            interval = "1s"
            """
        )
        try bench.startDaemon()
        try waitUntil("collecting") { try bench.sound()?.state == "error" }
        #expect(try bench.text("state/enrolled") == bench.endpoint + "\n")
    }

    /// Nothing is collected before the server was asked.
    @Test func serverThatFailsOnce_isAskedAgainLongBeforeTheInterval() throws {
        let bench = try Bench("portal")
        try bench.write("good-token", "token", mode: 0o600)
        try bench.collect(
            """
            [upload]
            endpoint = "\(bench.endpoint)"
            token_file = "\(bench.folder)/token"
            interval = "1d"
            """
        )
        try bench.startDaemon()
        try waitUntil("collecting") { try bench.sound()?.state == "error" }
    }

    @Test func whileTheServerIsAsked_aReloadMakesOneSetOfSources_andAStopIsObeyed() throws {
        let bench = try Bench("silent")
        try bench.write("good-token", "token", mode: 0o600)
        let upload = """
            [upload]
            endpoint = "\(bench.endpoint)"
            token_file = "\(bench.folder)/token"
            """
        try bench.collect(upload)
        try bench.startDaemon()
        let asked = bench.folder + "/asked"
        try waitUntil("the question") { FileManager.default.fileExists(atPath: asked) }
        #expect(try bench.sound()?.state == "disabled")
        try bench.collect(upload + "\nrequired = false")
        bench.signal(SIGHUP)
        try waitUntil("collecting") { try bench.sound()?.state == "error" }
        let threads = "/proc/\(bench.daemon?.processIdentifier ?? 0)/task"
        let names = try FileManager.default.contentsOfDirectory(atPath: threads).map {
            try? String(contentsOfFile: "\(threads)/\($0)/comm", encoding: .utf8)
        }
        #expect(names.filter { $0 == "audio\n" }.count == 1)
        #expect(try bench.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: bench.folder + "/state/enrolled"))
    }

    @Test func stopWhileTheServerIsAsked_isObeyed() throws {
        let bench = try Bench("silent")
        try bench.write("good-token", "token", mode: 0o600)
        try bench.collect(
            "[upload]\nendpoint = \"\(bench.endpoint)\"\ntoken_file = \"\(bench.folder)/token\""
        )
        try bench.launch()
        let asked = bench.folder + "/asked"
        try waitUntil("the question") { FileManager.default.fileExists(atPath: asked) }
        #expect(try bench.stop() == 0)
    }
}
