// `waypost enroll` with an endpoint without a path, a private authority, and plain HTTP.
import Foundation
import Support
import Testing

@Suite struct EnrollServerTests {
    /// A Waypost server as far as enrolment goes; with an argument over TLS.
    private static let server = """
        import http.server, json, ssl, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def answer(self, status, answer):
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            def do_GET(self):
                isWaypost = self.path == "/healthz" and not sys.argv[1].endswith("other")
                self.answer(200, {"ok": True, "version": "1"} if isWaypost else {"hello": 1})
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                places = {"/api/device/verify": {"ok": True}, "/api/device/enroll": {"token": "good"}}
                if sys.argv[1].endswith("other"): places = {"/device/verify": {"ok": True}}
                self.answer(200 if self.path in places else 404, places.get(self.path, {}))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if sys.argv[1].endswith(".pem"):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[1] + ".key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    private func device(_ temporary: TemporaryFolder) throws -> Device {
        let device = try Device(in: temporary)
        try device.write(
            """
            state_directory = "\(device.folder)/state"
            runtime_directory = "\(device.folder)/run"

            """,
            "waypost.toml"
        )
        return device
    }

    private func enroll(_ device: Device, _ host: String, _ words: [String]) throws -> Outcome {
        let fixed = ["enroll", "--endpoint", host, "--config", device.folder + "/waypost.toml"]
        return try Process.run(Tree.program("waypost"), fixed + words)
    }

    @Test(arguments: ["", "/"]) func endpointWithoutAPath_getsThatOfAWaypostServer(end: String)
        throws
    {
        let stub = try StubServer(Self.server, "")
        defer { stub.stop() }
        let temporary = TemporaryFolder()
        let device = try device(temporary)
        let host = "http://127.0.0.1:\(stub.port)"
        let done = try enroll(device, host + end, ["--code", "x"])
        #expect(done.status == 0, "\(done.error)")
        #expect(try temporary.read("waypost.toml").contains("endpoint = \"\(host)/api/ingest\""))
        #expect(try temporary.read("state/enrolled") == "\(host)/api/ingest\n")
    }

    @Test func endpointWithoutAPath_ofAnotherServer_staysAsItIs() throws {
        let stub = try StubServer(Self.server, "other")
        defer { stub.stop() }
        let temporary = TemporaryFolder()
        let device = try device(temporary)
        try device.write("good", "given")
        let host = "http://127.0.0.1:\(stub.port)"
        let done = try enroll(device, host, ["--token-file", device.folder + "/given"])
        #expect(done.status == 0, "\(done.error)")
        #expect(try temporary.read("waypost.toml").contains("endpoint = \"\(host)\""))
    }

    @Test func certificateOfAPrivateAuthority_isCopiedAndUsed() throws {
        let temporary = TemporaryFolder()
        let device = try device(temporary)
        let pem = temporary.path + "/home.pem"
        let made = try Process.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                pem + ".key", "-out", pem,
            ]
        )
        try #require(made.status == 0, "\(made.error)")
        let stub = try StubServer(Self.server, pem)
        defer { stub.stop() }
        let host = "https://localhost:\(stub.port)"
        let run = { (more: [String]) in try enroll(device, host, ["--code", "x"] + more) }
        let before = try temporary.read("waypost.toml")
        #expect(try run([]).status == 2)
        #expect(try run(["--ca-file", temporary.path + "/none"]).status == 2)
        #expect(try run(["--ca-file", pem + ".key"]).error.contains("not a certificate"))
        #expect(try temporary.read("waypost.toml") == before)
        #expect(!(try temporary.files.contains("ca.pem")))
        let done = try run(["--ca-file", pem])
        #expect(done.status == 0, "\(done.error)")
        #expect(
            try temporary.read("waypost.toml").contains("ca_file = \"\(temporary.path)/ca.pem\"")
        )
        #expect(try temporary.read("ca.pem") == temporary.read("home.pem"))
        // And the next time without the option.
        let again = try run([])
        #expect(again.status == 0, "\(again.error)")
    }

    /// curl takes 127.1 for 127.0.0.1, and the rule for loopback addresses does not.
    @Test func plainHTTP_needsItsOption() throws {
        let stub = try StubServer(Self.server, "")
        defer { stub.stop() }
        let temporary = TemporaryFolder()
        let device = try device(temporary)
        let host = "http://127.1:\(stub.port)"
        let refused = try enroll(device, host, ["--code", "x"])
        #expect(refused.status == 78)
        #expect(refused.error.contains("--allow-plaintext on a network that you trust"))
        let done = try enroll(device, host, ["--code", "x", "--allow-plaintext"])
        #expect(done.status == 0, "\(done.error)")
        #expect(try temporary.read("waypost.toml").contains("allow_plaintext = true"))
        #expect(try device.run("config", "check").status == 0)
    }
}
