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

    private final class Fixture: Device {
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

    @Test func enrolment_isStored_andAllowsCollectingOffline() throws {
        let fixture = try Fixture()
        try fixture.write("good-token\n", "given")
        let done = try fixture.enroll("given")
        #expect(done.status == 0, "\(done.error)")
        #expect(done.output.contains("the server accepts this device"))
        let configuration = try fixture.text("waypost.toml")
        #expect(configuration.hasPrefix("# mine\n"))
        #expect(configuration.contains("endpoint = \"\(fixture.endpoint)\""))
        #expect(try fixture.run("config", "check").status == 0)
        let files = FileManager.default
        let token = try files.attributesOfItem(atPath: fixture.folder + "/token")
        #expect(token[.posixPermissions] as? Int == 0o600)
        #expect(try fixture.text("state/enrolled") == fixture.endpoint + "\n")
        fixture.stopServer()
        try fixture.startDaemon()
        try waitUntil("collecting") { try fixture.sound()?.state == "error" }
    }

    @Test func refusedToken_changesNothing() throws {
        let fixture = try Fixture()
        let before = try fixture.text("waypost.toml")
        try fixture.write("bad-token", "given")
        let refused = try fixture.enroll("given")
        #expect(refused.status == 2)
        #expect(refused.error.contains("E002"))
        #expect(try fixture.text("waypost.toml") == before)
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/state/enrolled"))
        let plain = try fixture.run("enroll", "--endpoint", "http://example.org/", "--code", "x")
        #expect(plain.status == 78)
        #expect(plain.error.contains("--allow-plaintext"), "\(plain.error)")
    }

    @Test func configurationNamedFromItsFolder_getsATokenBesideIt() throws {
        let fixture = try Fixture()
        try fixture.write("good-token\n", "given")
        let arguments = ["--token-file", "given", "--config", "waypost.toml"]
        let done = try Process.run(
            "/usr/bin/env",
            [
                "-C", fixture.folder, Tree.program("waypost"), "enroll", "--endpoint",
                fixture.endpoint,
            ]
                + arguments
        )
        #expect(done.status == 0, "\(done.error)")
        #expect(try fixture.text("waypost.toml").contains("\"\(fixture.folder)/token\""))
        #expect(try fixture.text("token") == fixture.bound("good-token"))
    }

    @Test(.enabled(if: geteuid() == 0))
    func missingSudo_isReported() throws {
        let fixture = try Fixture()
        try fixture.write("good-token\n", "given", mode: 0o644)
        for path in [fixture.folder, fixture.config] { chmod(path, 0o755) }
        let refused = try Process.run(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", Tree.program("waypost"), "enroll"]
                + ["--endpoint", fixture.endpoint, "--token-file", fixture.folder + "/given"]
                + ["--config", fixture.config]
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
        let fixture = try Fixture()
        try fixture.write("good-token", "given")
        let places = "state_directory = \"\(fixture.folder)/state\"\n"
        try fixture.write("\(places)\(text)\n", "waypost.toml")
        let done = try fixture.enroll("given")
        #expect(Int(done.status) == status, "\(done.error)")
        let step = "set upload.endpoint and upload.token_file there"
        #expect(done.error.isEmpty || done.error.contains(step))
        #expect(try fixture.text("waypost.toml").contains(fixture.endpoint) == (status == 0))
        #expect(try fixture.run("config", "check").status == 0)
    }

    @Test func code_isGoodOnce() throws {
        let fixture = try Fixture()
        let first = try fixture.run("enroll", "--endpoint", fixture.endpoint, "--code", "once")
        #expect(first.status == 0, "\(first.error)")
        #expect(try fixture.text("token") == fixture.bound("good-token"))
        #expect(try fixture.text("state/enrolled") == fixture.endpoint + "\n")
        let second = try fixture.run("enroll", "--endpoint", fixture.endpoint, "--code", "once")
        #expect(second.status == 2)
        #expect(second.error.contains("code"))
    }

    /// The network fails between the exchange and the verification.
    @Test func unverifiedCode_canBeRetried_andChangesNothing()
        throws
    {
        let fixture = try Fixture("portal")
        try fixture.write("of-another-server\n", "token", mode: 0o600)
        try fixture.collect(
            "[upload]\nendpoint = \"http://127.0.0.1:1/x\"\ntoken_file = \"\(fixture.folder)/token\""
        )
        let before = try fixture.text("waypost.toml")
        let first = try fixture.run("enroll", "--endpoint", fixture.endpoint, "--code", "once")
        #expect(first.status == 2)
        #expect(first.error.contains("the same command"))
        #expect(try fixture.text("token") == "of-another-server\n")
        #expect(try fixture.text("waypost.toml") == before)
        let second = try fixture.run("enroll", "--endpoint", fixture.endpoint, "--code", "once")
        #expect(second.status == 0, "\(second.error)")
        #expect(try fixture.text("token") == fixture.bound("good-token"))
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/state/asked-token"))
    }

    @Test func anotherEndpoint_isNotTheOneThatAcceptedTheDevice() throws {
        let fixture = try Fixture()
        try fixture.write("good-token", "token", mode: 0o600)
        try fixture.collect(
            "[upload]\nendpoint = \"http://127.0.0.1:1/x\"\ntoken_file = \"\(fixture.folder)/token\""
        )
        let state = fixture.folder + "/state"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        try fixture.write(fixture.endpoint + "\n", "state/enrolled")
        try fixture.startDaemon()
        let sound = try fixture.sound()
        #expect(sound?.state == "disabled")
        #expect(sound?.reason == "waiting for the server to accept this device")
        // A gateway that may not collect is not healthy.
        let why = "nothing is collected: waiting for the server to accept this device"
        #expect(try fixture.reasons().contains(why))
        // The command makes the running gateway reload.
        let done = try fixture.enroll("token")
        #expect(done.status == 0, "\(done.error)")
        try waitUntil("collecting") { try fixture.sound()?.state == "error" }
        #expect(try !fixture.reasons().contains(why))
    }

    /// They waited for the next interval, up to five minutes, and nobody said so.
    @Test func deviceThatWasEnrolled_sendsItsFirstDataAtOnce() throws {
        let fixture = try Fixture()
        try fixture.write("good-token", "given")
        try fixture.collect("[upload]\ninterval = \"1h\"")
        try fixture.launch(["--patience", "2"])
        try waitUntil("the daemon") { try fixture.sound()?.state == "disabled" }
        let done = try fixture.enroll("given")
        #expect(done.output.contains("sends its first data within a minute"), "\(done.output)")
        try waitUntil("its first health record") {
            try fixture.stream("waypost_health")["uploaded"] as? Int ?? 0 > 0
        }
        #expect(try fixture.stop() == 0)
    }

    @Test func serverWithoutVerification_enrolsByAcceptedEvents() throws {
        let fixture = try Fixture("mute")
        try fixture.write("good-token", "token", mode: 0o600)
        try fixture.collect(
            """
            [upload]
            endpoint = "\(fixture.endpoint)"
            token_file = "\(fixture.folder)/token"
            interval = "1s"
            """
        )
        try fixture.startDaemon()
        try waitUntil("collecting") { try fixture.sound()?.state == "error" }
        #expect(try fixture.text("state/enrolled") == fixture.endpoint + "\n")
    }

    /// Nothing is collected before the server was asked.
    @Test func failedServerCheck_isRetriedBeforeTheInterval() throws {
        let fixture = try Fixture("portal")
        try fixture.write("good-token", "token", mode: 0o600)
        try fixture.collect(
            """
            [upload]
            endpoint = "\(fixture.endpoint)"
            token_file = "\(fixture.folder)/token"
            interval = "1d"
            """
        )
        try fixture.startDaemon()
        try waitUntil("collecting") { try fixture.sound()?.state == "error" }
    }

    @Test func pendingServerCheck_allowsReloadAndStop() throws {
        let fixture = try Fixture("silent")
        try fixture.write("good-token", "token", mode: 0o600)
        let upload = """
            [upload]
            endpoint = "\(fixture.endpoint)"
            token_file = "\(fixture.folder)/token"
            """
        try fixture.collect(upload)
        try fixture.startDaemon()
        let asked = fixture.folder + "/asked"
        try waitUntil("the question") { FileManager.default.fileExists(atPath: asked) }
        #expect(try fixture.sound()?.state == "disabled")
        try fixture.collect(upload + "\nrequired = false")
        fixture.signal(SIGHUP)
        try waitUntil("collecting") { try fixture.sound()?.state == "error" }
        let threads = "/proc/\(fixture.daemon?.processIdentifier ?? 0)/task"
        let names = try FileManager.default.contentsOfDirectory(atPath: threads).map {
            try? String(contentsOfFile: "\(threads)/\($0)/comm", encoding: .utf8)
        }
        #expect(names.filter { $0 == "audio\n" }.count == 1)
        #expect(try fixture.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/state/enrolled"))
    }

    @Test func stopWhileTheServerIsAsked_isObeyed() throws {
        let fixture = try Fixture("silent")
        try fixture.write("good-token", "token", mode: 0o600)
        try fixture.collect(
            "[upload]\nendpoint = \"\(fixture.endpoint)\"\ntoken_file = \"\(fixture.folder)/token\""
        )
        try fixture.launch()
        let asked = fixture.folder + "/asked"
        try waitUntil("the question") { FileManager.default.fileExists(atPath: asked) }
        #expect(try fixture.stop() == 0)
    }
}
