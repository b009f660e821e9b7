// The real program on a network that stalls, through proxies, and with faulty servers.
import Foundation
import Support
import Testing

@Suite struct NetworkSystemTests {
    /// One of the servers of Tests/FieldFaults/badserver.py, and its output.
    private final class BadServer {
        private let process = Process()
        private let input = Pipe()
        private let log: URL

        init(_ folder: String, _ arguments: String...) throws {
            log = URL(fileURLWithPath: "\(folder)/server-\(UUID().uuidString)")
            try Data().write(to: log)
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            let script = Tree.path("Tests/FieldFaults/badserver.py")
            process.arguments = ["python3", script] + arguments
            process.standardInput = input
            process.standardOutput = try FileHandle(forWritingTo: log)
            process.standardError = FileHandle.nullDevice
            try process.run()
            try waitUntil("the server says its address") { !lines.isEmpty }
        }

        deinit {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }

        var lines: [String] {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map(String.init)
        }

        var address: String { lines.first ?? "" }
        var said: [String] { Array(lines.dropFirst()) }
    }

    private final class Fixture: Device {
        init() throws {
            try super.init()
            try write("secret\n", "token", mode: 0o600)
            // Without the proxies of the user who runs the tests.
            for name in ProcessInfo.processInfo.environment.keys
            where name.lowercased().hasSuffix("_proxy") { environment[name] = "" }
        }

        func upload(to endpoint: String, _ more: String = "", timeout: String = "1h") throws {
            try configure(
                """
                [upload]
                required = false
                endpoint = "\(endpoint)"
                token_file = "\(folder)/token"
                interval = "200ms"
                timeout = "\(timeout)"
                \(more)
                """
            )
        }

        func start(_ variables: [String: String]) throws {
            environment.merge(variables) { $1 }
            try launch()
        }

        func events() throws -> [String: Any] { try stream("waypost_events") }

        func error() throws -> [String: Any] {
            try events()["last_error"] as? [String: Any] ?? [:]
        }

        /// Sends SIGTERM; returns the exit status and the duration.
        func end() throws -> (status: Int32, seconds: Double) {
            let began = Date()
            return (try stop(), Date().timeIntervalSince(began))
        }
    }

    @Test func stalledRequest_blocksNeitherStatusNorReloadNorStop() throws {
        let fixture = try Fixture()
        let server = try BadServer(fixture.folder, "stall")
        try fixture.upload(to: "http://\(server.address)/api/ingest")
        try fixture.launch()
        try waitUntil("the request is under way") { !server.said.isEmpty }
        #expect(try fixture.events()["in_flight"] as? Int ?? 0 > 0)
        // A reload replaces the uploader: the old request ends at once, an hour before its timeout.
        try fixture.upload(to: "http://\(server.address)/other/ingest")
        fixture.signal(SIGHUP)
        try waitUntil("the new address is asked") {
            server.said.contains("POST /other/ingest HTTP/1.1")
        }
        try waitUntil("the old request is gone") { server.said.contains("gone") }
        #expect(try fixture.events()["in_flight"] as? Int ?? 0 > 0)
        // The limit of a stop (waypost(1)), which is shorter than the request's timeout.
        let end = try fixture.end()
        #expect(end.status == 0)
        #expect(end.seconds < 5)
    }

    /// The next tick is days away: until then a forgotten failure would look healthy.
    @Test func failure_survivesAReload_andNewAddressIsTriedAtOnce() throws {
        let fixture = try Fixture()
        func configure(_ endpoint: String, _ tables: String = "") throws {
            try fixture.upload(to: endpoint, tables)
            let text = try String(contentsOfFile: fixture.config, encoding: .utf8)
            try fixture.write(text.replacing("200ms", with: "7d"), "waypost.toml")
        }
        try configure("http://127.0.0.1:1/api/ingest")
        try fixture.launch()
        try waitUntil("a failure") { try fixture.run("sync").status == 1 }
        try configure("http://127.0.0.1:1/api/ingest", "[stream.soil]\n")
        fixture.signal(SIGHUP)
        try waitUntil("the new stream") { try fixture.stream("soil")["pending"] as? Int == 0 }
        let reasons = try fixture.status()["reasons"] as? [String] ?? []
        #expect(reasons.contains { $0.hasPrefix("uploads failing") }, "\(reasons)")
        try configure(try fixture.startReceiver(tokens: "secret"))
        fixture.signal(SIGHUP)
        try waitUntil("an upload") { try fixture.events()["uploaded"] as? Int ?? 0 > 0 }
        try waitUntil("no failure") {
            let reasons = try fixture.status()["reasons"] as? [String] ?? []
            return !reasons.contains { $0.hasPrefix("uploads failing") }
        }
    }

    @Test func silentNameServer_blocksNeitherStatusNorStop() throws {
        let fixture = try Fixture()
        try """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <unistd.h>
        #include <sys/types.h>
        #include <sys/socket.h>
        #include <netdb.h>
        #include <fcntl.h>
        #include <stdlib.h>
        int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
            // A numeric address is no question to a name server.
            if (hints && hints->ai_flags & AI_NUMERICHOST) {
                int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
                return real(name, service, hints, result);
            }
            close(open(getenv("ASKED"), O_CREAT | O_WRONLY, 0600));
            for (;;) pause();
        }
        """.write(toFile: fixture.folder + "/silent.c", atomically: true, encoding: .utf8)
        let library = try fixture.library(fixture.folder + "/silent.c", to: "silent.so")
        try fixture.upload(to: "https://waypost.example/api/ingest")
        let asked = fixture.folder + "/asked"
        try fixture.start(["LD_PRELOAD": library, "ASKED": asked])
        try waitUntil("the name is looked up") {
            FileManager.default.fileExists(atPath: asked)
        }
        #expect(try fixture.events()["in_flight"] as? Int ?? 0 > 0)
        let end = try fixture.end()
        #expect(end.status == 0)
        #expect(end.seconds < 5)
    }

    /// One port of both families: IPv4 accepts everything, IPv6 swallows it.
    private static let twoWays = """
        import http.server, socket, socketserver
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        swallower = socket.socket(socket.AF_INET6)
        swallower.bind(("::1", server.server_port))
        swallower.listen(64)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    /// Like a tunnel that does not report its MTU: libcurl would use the same address each time.
    @Test func swallowingIPv6_isLeftForIPv4() throws {
        let fixture = try Fixture()
        let server = try StubServer(Self.twoWays, "")
        defer { server.stop() }
        // Machines without ::1 skip this test.
        guard !server.port.isEmpty else { return }
        let library = try fixture.library(Tree.path("Tests/FieldFaults/twoways.c"), to: "ways.so")
        let host = "two-ways.example"
        let endpoint = "http://\(host):\(server.port)/api/ingest"
        try fixture.upload(to: endpoint, "allow_plaintext = true", timeout: "1s")
        let ways = ["LD_PRELOAD": library, "TWOWAYS_HOST": host]
        // A command tries only once.
        let enrolled = try Process.run(
            Tree.program("waypost"),
            ["enroll", "--endpoint", endpoint, "--token-file", fixture.folder + "/token"]
                + ["--config", fixture.config],
            environment: fixture.environment.merging(ways) { $1 }
        )
        #expect(enrolled.status == 0, "\(enrolled.error)")
        try fixture.start(ways)
        try waitUntil("the upload is done") {
            try fixture.events()["uploaded"] as? Int ?? 0 > 0
        }
    }

    @Test func httpProxy_isUsed() throws {
        let fixture = try Fixture()
        let proxy = try BadServer(fixture.folder, "proxy")
        try fixture.upload(to: "http://ingest.invalid/api/ingest", "allow_plaintext = true")
        try fixture.start(["http_proxy": "http://\(proxy.address)"])
        try waitUntil("the upload is done") {
            try fixture.events()["uploaded"] as? Int ?? 0 > 0
        }
        #expect(proxy.said.first == "POST http://ingest.invalid/api/ingest HTTP/1.1")
    }

    @Test func noProxy_goesStraight() throws {
        let fixture = try Fixture()
        let proxy = try BadServer(fixture.folder, "proxy")
        try fixture.upload(to: "http://ingest.invalid/api/ingest", "allow_plaintext = true")
        try fixture.start([
            "http_proxy": "http://\(proxy.address)", "no_proxy": "other.example,ingest.invalid",
        ])
        try waitUntil("the upload fails") { try fixture.error()["code"] != nil }
        #expect(try fixture.error()["code"] as? String == "E001")
        #expect(proxy.said.isEmpty)
    }

    @Test func ownMachine_isNeverAskedThroughAProxy() throws {
        let fixture = try Fixture()
        let (proxy, server) = (
            try BadServer(fixture.folder, "proxy"), try BadServer(fixture.folder, "proxy")
        )
        try fixture.upload(to: "http://\(server.address)/api/ingest")
        try fixture.start(["http_proxy": "http://\(proxy.address)", "ALL_PROXY": proxy.address])
        try waitUntil("the upload is done") {
            try fixture.events()["uploaded"] as? Int ?? 0 > 0
        }
        #expect(server.said.first == "POST /api/ingest HTTP/1.1")
        #expect(proxy.said.isEmpty)
    }

    @Test func httpsProxyThatRefuses_isANetworkError() throws {
        let fixture = try Fixture()
        let proxy = try BadServer(fixture.folder, "proxy")
        try fixture.upload(to: "https://ingest.invalid/api/ingest")
        try fixture.start(["https_proxy": "http://\(proxy.address)"])
        try waitUntil("the upload fails") { try fixture.error()["code"] != nil }
        #expect(try fixture.error()["code"] as? String == "E001")
        #expect((try fixture.error()["message"] as? String)?.contains("503") == true)
        #expect(proxy.said.first == "CONNECT ingest.invalid:443 HTTP/1.1")
        #expect(try fixture.events()["uploaded"] as? Int == 0)
    }

    @Test func proxyThatStalls_endsByTheTimeout() throws {
        let fixture = try Fixture()
        let proxy = try BadServer(fixture.folder, "stall")
        try fixture.upload(to: "https://ingest.invalid/api/ingest", timeout: "1s")
        try fixture.start(["https_proxy": "http://\(proxy.address)"])
        try waitUntil("the upload fails") { try fixture.error()["code"] != nil }
        #expect(try fixture.error()["code"] as? String == "E001")
        #expect(proxy.said.first == "CONNECT ingest.invalid:443 HTTP/1.1")
        #expect(try fixture.end().status == 0)
    }

    @Test func httpsProxy_isATunnelToTheServerItself() throws {
        let fixture = try Fixture()
        let (key, certificate) = (fixture.folder + "/key.pem", fixture.folder + "/cert.pem")
        let arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", key, "-out", certificate, "-days", "30", "-subj",
            "/CN=ingest.invalid", "-addext", "subjectAltName=DNS:ingest.invalid",
        ]
        try #require(try Process.run("/usr/bin/env", ["openssl"] + arguments).status == 0)
        let proxy = try BadServer(fixture.folder, "tunnel", certificate, key)
        try fixture.upload(to: "https://ingest.invalid/api/ingest", "ca_file = \"\(certificate)\"")
        try fixture.start(["https_proxy": "http://\(proxy.address)"])
        try waitUntil("the upload is done") {
            try fixture.events()["uploaded"] as? Int ?? 0 > 0
        }
        #expect(
            Array(proxy.said.prefix(2)) == [
                "CONNECT ingest.invalid:443 HTTP/1.1", "inside: POST /api/ingest HTTP/1.1",
            ]
        )
    }

    /// A tenth of `deploy/torture`'s family: the real server, random faults, kill -9 among them.
    @Test func hundredFaults_loseAndDoubleNothing() throws {
        let seed = UInt16.random(in: 0...UInt16.max)
        let programs = URL(fileURLWithPath: Tree.program("waypost")).deletingLastPathComponent()
        let torture = try Process.run(
            "/usr/bin/env",
            [
                "python3", Tree.path("Tests/Torture/main.py"), "--programs", programs.path,
                "--faults", "none", "--only", "network", "--seconds", "6", "--seed", "\(seed)",
            ]
        )
        #expect(torture.status == 0, "seed \(seed)\n\(torture.output)")
        #expect(torture.output.contains("torture: ok"))
    }
}
