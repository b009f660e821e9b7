// `waypost sync` reports success only after everything was uploaded.
import Foundation
import Support
import Testing

@Suite struct SyncSystemTests {
    /// Answers each batch with the status in a file, or not at all.
    private static let server = """
        import http.server, sys, time
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = open(sys.argv[1]).read()
                if answer == "hang": time.sleep(1000)
                self.send_response(int(answer))
                self.send_header("Content-Length", "0")
                self.end_headers()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    private let device: Device

    init() throws { device = try Device() }

    private func put(_ record: String) throws {
        #expect(try device.run("put", "weather", input: record + "\n").status == 0)
    }

    private func configure(_ server: StubServer, interval: String = "1h") throws {
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "http://127.0.0.1:\(server.port)/api/ingest"
            token_file = "\(device.folder)/token"
            interval = "\(interval)"
            max_attempts = 1
            [stream.weather]
            """
        )
    }

    /// A gateway whose first sync is done, and its server.
    private func start() throws -> StubServer {
        try device.write("200", "answer")
        let server = try StubServer(Self.server, device.folder + "/answer")
        try device.write("token", "token", mode: 0o600)
        try configure(server)
        try device.write("", "log")
        let log = try #require(FileHandle(forWritingAtPath: device.folder + "/log"))
        try device.launch(log: log)
        try waitUntil("a sync") { try device.run("sync").status == 0 }
        return server
    }

    @Test func sync_isDone_onlyIfNothingIsLeftOrQuarantined() throws {
        let server = try start()
        defer { server.stop() }

        try put("{\"n\": 1}")
        try device.write("503", "answer")
        let failed = try device.run("sync")
        #expect(failed.status == 1)
        #expect(failed.error.contains("1 record accepted before, still pending"))
        #expect(failed.output.contains("weather: 0 uploaded, 1 pending"))

        try device.write("422", "answer")
        let refused = try device.run("sync")
        #expect(refused.status == 1)
        #expect(refused.error.contains("waypost quarantine list"))

        // Earlier quarantined batches do not count for this sync.
        try device.write("200", "answer")
        #expect(try device.run("sync").status == 0)
    }

    /// Without its gateway a sync cannot continue.
    @Test func gatewayThatEndsMeanwhile_isSaid() throws {
        let server = try start()
        defer { server.stop() }
        try put("{\"n\": 1}")
        try device.write("hang", "answer")
        try device.write("", "told")
        let reported = try #require(FileHandle(forWritingAtPath: device.folder + "/told"))
        let sync = try device.begin("sync", error: reported)
        try waitUntil("a request") { try device.stream("weather")["in_flight"] as? Int == 1 }
        device.killDaemon()
        try waitUntil("its end") { !sync.isRunning }
        let text = try String(contentsOfFile: device.folder + "/told", encoding: .utf8)
        #expect(sync.terminationStatus == 1)
        #expect(text.contains("waypost is not running"), "\(text)")
    }

    /// The gateway had the request and may have begun: "not done" differs from "not asked".
    @Test func gatewayThatEndsBeforeItsFirstWord_isSaid() throws {
        try device.configure("[upload]\nrequired = false\n")
        let gateway = try StubServer(
            """
            import os, socket, sys
            server = socket.socket(socket.AF_UNIX)
            os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
            server.bind(sys.argv[1])
            server.listen()
            print(0, flush=True)
            client = server.accept()[0]
            client.recv(4096)
            client.close()
            """,
            device.folder + "/run/control.sock"
        )
        defer { gateway.stop() }
        let sync = try device.run("sync")
        #expect(sync.status == 1)
        #expect(sync.error.contains("not finished: waypost is not running"), "\(sync.error)")
    }

    /// Another interval makes a new uploader.
    @Test func datesOfUploads_outlastAReload() throws {
        let server = try start()
        defer { server.stop() }
        func upload() throws -> [String: Any] {
            try device.status()["upload"] as? [String: Any] ?? [:]
        }
        let before = try upload()
        let sent = try device.stream("waypost_events")["last_success_at"] as? String
        #expect(sent != nil)
        try configure(server, interval: "6d")
        device.signal(SIGHUP)
        try waitUntil("the reload") {
            try String(contentsOfFile: device.folder + "/log", encoding: .utf8)
                .contains("configuration reloaded, changed: upload")
        }
        let after = try upload()
        for key in ["last_attempt_at", "last_success_at"] {
            #expect(after[key] as? String == before[key] as? String, "\(key)")
        }
        #expect(try device.stream("waypost_events")["last_success_at"] as? String == sent)
    }
}
