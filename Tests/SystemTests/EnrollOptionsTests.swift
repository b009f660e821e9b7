// `waypost enroll`: its options, the endpoint without a path, and what its errors name.
import Foundation
import Support
import Testing

@Suite struct EnrollOptionsTests {
    /// A server below /api or at the root, with TLS if it gets a certificate; it knows one token.
    private static let server = """
        import http.server, ssl, sys
        root, cert = sys.argv[1].split(":")
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, data = 404, b"<html>not here</html>"
                if "/json/" in self.path: data = b'{"error": "no such path"}'
                if self.path.endswith(root + "/device/verify"):
                    status = 200 if self.headers.get("X-Device-Token") == "good-token" else 401
                    data = b'{"error": "token"}' if status == 401 else b'{"ok": true}'
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert + "/cert", cert + "/key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    private let device: Device

    init() throws {
        device = try Device("[upload]\nrequired = true")
        try device.write("good-token\n", "given", mode: 0o600)
    }

    private func serve(root: String = "/api", isTLS: Bool = false) throws -> StubServer {
        if isTLS { try makeCertificate(in: device.folder) }
        return try StubServer(Self.server, "\(root):\(isTLS ? device.folder : "")")
    }

    private func enroll(_ endpoint: String, _ more: String...) throws -> Outcome {
        let token = ["--token-file", device.folder + "/given", "--config", device.config]
        return try Process.run(
            Tree.program("waypost"),
            ["enroll", "--endpoint", endpoint] + token + more
        )
    }

    private func configuration() throws -> String {
        try String(contentsOfFile: device.config, encoding: .utf8)
    }

    @Test(arguments: ["", "/"])
    func endpointWithoutPath_getsThePathOfTheServer(end: String) throws {
        let server = try serve()
        defer { server.stop() }
        let place = "http://127.0.0.1:\(server.port)"
        let done = try enroll(place + end)
        #expect(done.status == 0, "\(done.error)")
        #expect(try configuration().contains("endpoint = \"\(place)/api/ingest\""))
    }

    @Test func endpointWithoutPath_isKept_ifNoServerAnswersAtAPI() throws {
        let server = try serve(root: "")
        defer { server.stop() }
        let place = "http://127.0.0.1:\(server.port)/own/ingest"
        let done = try enroll(place)
        #expect(done.status == 0, "\(done.error)")
        #expect(try configuration().contains("endpoint = \"\(place)\""))
        let none = try serve(root: "/elsewhere")
        defer { none.stop() }
        let refused = try enroll("http://127.0.0.1:\(none.port)")
        #expect(refused.status == 0, "a server without verification enrols by its first events")
        #expect(try configuration().contains("endpoint = \"http://127.0.0.1:\(none.port)\""))
    }

    @Test func caFile_isCopiedBesideConfiguration_onceVerified() throws {
        let server = try serve(isTLS: true)
        defer { server.stop() }
        let place = "https://127.0.0.1:\(server.port)/api/ingest"
        let unknown = try enroll(place)
        #expect(unknown.status == 2)
        #expect(unknown.error.contains("--ca-file"))
        let missing = try enroll(place, "--ca-file", "/nonexistent/ca.pem")
        #expect(missing.status == 2)
        #expect(missing.error.contains("/nonexistent/ca.pem: "))
        #expect(try !configuration().contains("endpoint"))
        let done = try enroll(place, "--ca-file", device.folder + "/cert")
        #expect(done.status == 0, "\(done.error)")
        let copy = device.folder + "/server-ca.pem"
        #expect(try configuration().contains("ca_file = \"\(copy)\""))
        let files = FileManager.default
        #expect(files.contentsEqual(atPath: copy, andPath: device.folder + "/cert"))
    }

    @Test func remotePlaintext_isRefused_orAllowedInConfiguration() throws {
        let server = try serve()
        defer { server.stop() }
        let place = "http://server.invalid/api/ingest"
        let refused = try enroll(place)
        #expect(refused.status == 78)
        #expect(refused.error.contains("--allow-plaintext"))
        let done = try Process.run(
            "/usr/bin/env",
            ["http_proxy=http://127.0.0.1:\(server.port)", Tree.program("waypost"), "enroll"]
                + ["--endpoint", place, "--token-file", device.folder + "/given"]
                + ["--allow-plaintext", "--config", device.config]
        )
        #expect(done.status == 0, "\(done.error)")
        #expect(try configuration().contains("allow_plaintext = true"))
    }

    @Test func errorsNameTheOption() throws {
        let closed = try enroll("http://127.0.0.1:1/api/ingest")
        #expect(closed.error.contains("the host and port in --endpoint"), "\(closed.error)")
        let server = try serve()
        defer { server.stop() }
        let plain = try enroll("https://127.0.0.1:\(server.port)")
        #expect(plain.error.contains("does not use TLS"), "\(plain.error)")
        #expect(plain.error.contains("--endpoint"))
        let places = [
            "json/ingest": "check the path in --endpoint", "page/ingest": "check --endpoint",
        ]
        for (path, advice) in places {
            let place = "http://127.0.0.1:\(server.port)/\(path)"
            let lost = try device.run("enroll", "--endpoint", place, "--code", "ABCD-EFGH")
            #expect(lost.status == 2)
            #expect(lost.error.contains(advice), "\(lost.error)")
            #expect(!lost.error.contains("--token-file"), "a code was given")
        }
        let wrong = try enroll("data.example.org")
        #expect(wrong.status == 78)
        #expect(wrong.error.hasPrefix("--endpoint data.example.org: "))
    }
}
