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

    private let device: Device

    init() throws { device = try Device() }

    private func put(_ record: String) throws {
        #expect(try device.run("put", "weather", input: record + "\n").status == 0)
    }

    @Test func sync_isDoneOnlyWhenNothingIsLeft_andNothingWasSetAside() throws {
        try device.write("200", "answer")
        let server = try StubServer(Self.server, device.folder + "/answer")
        defer { server.stop() }
        try device.write("token", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "http://127.0.0.1:\(server.port)/api/ingest"
            token_file = "\(device.folder)/token"
            interval = "1h"
            max_attempts = 1
            [stream.weather]
            """
        )
        try device.launch()
        try waitUntil("a sync") { try device.run("sync").status == 0 }

        try put("{\"n\": 1}")
        try device.write("503", "answer")
        let failed = try device.run("sync")
        #expect(failed.status == 1)
        #expect(failed.error.contains("1 records that were there before still wait"))
        #expect(failed.output.contains("weather: 0 uploaded, 1 pending"))

        try device.write("422", "answer")
        let refused = try device.run("sync")
        #expect(refused.status == 1)
        #expect(refused.error.contains("waypost quarantine list"))

        // What was set aside before is not this sync's.
        try device.write("200", "answer")
        #expect(try device.run("sync").status == 0)
    }
}
