// Monitoring by others: metrics for Prometheus, and a call after each upload.
import Foundation
import Support
import Testing

@Suite struct WatchersTests {
    /// Accepts every batch, and counts the calls to its other address.
    private static let server = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def do_POST(self): self.answer()
            def do_GET(self):
                with open(sys.argv[1], "a") as file: file.write(self.path + "\\n")
                self.answer()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """
    /// Reads metrics as Prometheus does, and prints a line per sample.
    private static let parser = """
        import sys
        from prometheus_client.parser import text_string_to_metric_families
        for family in text_string_to_metric_families(open(sys.argv[1]).read()):
            assert family.documentation and family.type != "unknown", family.name
            for sample in family.samples: print(sample.name, sample.labels, sample.value)
        """

    private let device: Device
    private var folder: String { device.folder }

    init() throws { device = try Device() }

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: folder + "/" + name, encoding: .utf8)) ?? ""
    }

    @Test func figuresAreWritten_andAWatcherIsCalledOnceAMinute() throws {
        let server = try StubServer(Self.server, folder + "/calls")
        defer { server.stop() }
        let place = "http://127.0.0.1:\(server.port)"
        try device.write("token", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            endpoint = "\(place)/api/ingest"
            heartbeat_url = "\(place)/alive"
            token_file = "\(folder)/token"
            [metrics]
            textfile = "\(folder)/waypost.prom"
            """
        )
        let begin = Date()
        try device.launch()
        try waitUntil("a sync") { try device.run("sync").status == 0 }
        try waitUntil("a call") { text("calls").hasSuffix("\n") }
        for _ in 0..<3 { #expect(try device.run("sync").status == 0) }
        let minutes = Int(Date().timeIntervalSince(begin) / 60)
        let calls = text("calls").split(separator: "\n")
        #expect((1...(1 + minutes)).contains(calls.count))
        #expect(calls.allSatisfy { $0 == "/alive" })

        try waitUntil("the figures") { text("waypost.prom").contains("uploaded_records_total") }
        let parser = ["-c", Self.parser, folder + "/waypost.prom"]
        let parsed = try Process.run("/usr/bin/python3", parser)
        #expect(parsed.status == 0, "\(parsed.error)")
        let samples = parsed.output
        #expect(samples.contains("waypost_uploaded_records_total {'stream': 'waypost_events'}"))
        #expect(samples.contains("waypost_info {'version': '0.1.0', 'device_id': '"))
    }
}
