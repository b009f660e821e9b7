// `waypost sync` says done only when it is.
import Foundation
import Support
import Testing

@Suite struct SyncSystemTests {
    /// Answers each batch as the file that it is given says.
    private static let server = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(int(open(sys.argv[1]).read()))
                self.send_header("Content-Length", "0")
                self.end_headers()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }

    private func write(_ text: String, _ name: String) throws {
        try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
    }

    private func sync() throws -> Outcome {
        try Process.run(Tree.program("waypost"), ["sync", "--config", folder + "/waypost.toml"])
    }

    private func put(_ record: String) throws {
        let arguments = ["put", "weather", "--config", folder + "/waypost.toml"]
        #expect(
            try Process.run(Tree.program("waypost"), arguments, input: record + "\n").status == 0
        )
    }

    @Test func sync_isDoneOnlyWhenNothingIsLeft_andNothingWasSetAside() throws {
        try write("200", "answer")
        let server = try StubServer(Self.server, folder + "/answer")
        defer { server.stop() }
        try write("token", "token")
        let mode = [FileAttributeKey.posixPermissions: 0o600]
        try FileManager.default.setAttributes(mode, ofItemAtPath: folder + "/token")
        try write(
            """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            endpoint = "http://127.0.0.1:\(server.port)/api/ingest"
            token_file = "\(folder)/token"
            interval = "1h"
            max_attempts = 1
            [stream.weather]
            [beacons]
            enabled = false
            [location]
            enabled = false
            [audio]
            enabled = false

            """,
            "waypost.toml"
        )
        let arguments = ["run", "--config", folder + "/waypost.toml"]
        let daemon = try Process.started(Tree.program("waypost"), arguments)
        defer { kill(daemon.processIdentifier, SIGKILL) }
        try waitUntil("a sync") { try sync().status == 0 }

        try put("{\"n\": 1}")
        try write("503", "answer")
        let failed = try sync()
        #expect(failed.status == 1)
        #expect(failed.error.contains("1 records that were there before still wait"))
        #expect(failed.output.contains("weather: 0 uploaded, 1 pending"))

        try write("422", "answer")
        let refused = try sync()
        #expect(refused.status == 1)
        #expect(refused.error.contains("waypost quarantine list"))

        // What was set aside before is not this sync's.
        try write("200", "answer")
        #expect(try sync().status == 0)
    }
}
