// The examples of deploy/proxy, each in its program, in front of the real receiver.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct ProxyTests {
    enum Proxy: String, CaseIterable {
        case nginx, caddy

        var path: String { Tree.tool(rawValue) }
    }

    /// A proxy with its own certificate, in front of a receiver.
    private final class Site {
        let receiver: ReceiverProcess
        let folder = TemporaryFolder()
        let port = freePort()
        private var process = Process()

        init(_ proxy: Proxy) throws {
            receiver = try ReceiverProcess(["--behind-proxy"])
            let made = try Process.run(
                "/usr/bin/openssl",
                [
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", folder.path + "/key.pem",
                    "-out", folder.path + "/cert.pem",
                ]
            )
            try #require(made.status == 0, "\(made.error)")
            try proxy == .nginx ? startNginx() : startCaddy()
            let isThere = try eventually {
                try curl("/healthz").hasSuffix("200") || !process.isRunning
            }
            let errors = (try? folder.read("errors").suffix(1000)) ?? ""
            try #require(isThere && process.isRunning, "\(proxy.rawValue): \(errors)")
        }

        /// Returns the example with this test's names; each name to replace must occur.
        private func example(_ name: String, _ changes: [(String, String)]) throws -> String {
            var text = try String(
                contentsOfFile: Tree.path("deploy/proxy/" + name),
                encoding: .utf8
            )
            for (old, new) in changes {
                try #require(text.contains(old), "\(old)")
                text = text.replacingOccurrences(of: old, with: new)
            }
            return text
        }

        private func startNginx() throws {
            let live = "/etc/letsencrypt/live/waypost.example.org/"
            let site = try example(
                "nginx.conf",
                [
                    ("listen 443", "listen 127.0.0.1:\(port)"),
                    (live + "fullchain.pem", folder.path + "/cert.pem"),
                    (live + "privkey.pem", folder.path + "/key.pem"),
                    ("127.0.0.1:8080", "127.0.0.1:\(receiver.port)"),
                ]
            )
            let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
                "\($0)_temp_path \(folder.path)/\($0);"
            }
            let text = """
                daemon off; pid \(folder.path)/pid; error_log stderr crit;
                \(getuid() == 0 ? "user root;" : "")
                events {}
                http { access_log off; \(places.joined(separator: " "))
                \(site)
                }
                """
            try folder.write(text, to: "nginx.conf")
            let arguments = ["-p", folder.path, "-c", folder.path + "/nginx.conf", "-e", "stderr"]
            process = try .started(Proxy.nginx.path, arguments)
        }

        private func startCaddy() throws {
            let pair = "\(folder.path)/cert.pem \(folder.path)/key.pem"
            let text = try example(
                "Caddyfile",
                [
                    (
                        "waypost.example.org {",
                        "https://localhost:\(port) {\n\tbind 127.0.0.1\n\ttls \(pair)"
                    ),
                    ("\tservers {", "\tadmin off\n\tauto_https off\n\tservers {"),
                    ("127.0.0.1:8080", "127.0.0.1:\(receiver.port)"),
                ]
            )
            try folder.write(text, to: "Caddyfile")
            let errors = try folder.write("", to: "errors")
            process = try .started(
                Proxy.caddy.path,
                ["run", "--config", folder.path + "/Caddyfile"],
                error: try FileHandle(forWritingTo: URL(fileURLWithPath: errors)),
                environment: ["XDG_DATA_HOME": folder.path, "XDG_CONFIG_HOME": folder.path]
            )
        }

        private func request(_ path: String) -> [String] {
            let certificate = ["--cacert", folder.path + "/cert.pem"]
            return ["--silent", "--ipv4"] + certificate + ["https://localhost:\(port)\(path)"]
        }

        /// Returns the answer's body, with its status in the last line.
        func curl(_ path: String, _ arguments: [String] = []) throws -> String {
            let fixed = ["--max-time", "60", "--write-out", "\n%{http_code}"] + request(path)
            return try Process.run("/usr/bin/curl", fixed + arguments).output
        }

        /// Opens a streamed answer and writes it to a file.
        func open(_ path: String, _ arguments: [String], file: String) throws -> Process {
            let fixed = ["--no-buffer", "--output", "\(folder.path)/\(file)"] + request(path)
            return try .started("/usr/bin/curl", fixed + arguments)
        }

        deinit {
            // Not killed: the wait would hang on nginx's workers, which only nginx ends.
            process.terminate()
            process.waitUntilExit()
        }
    }

    private static let installed = Proxy.allCases.filter { Tree.hasTool($0.rawValue) }

    /// Neither proxy buffers a live page.
    @Test(arguments: installed)
    func example_passesAnOpenPageOn(proxy: Proxy) throws {
        let site = try Site(proxy)
        let browser = try PageClient(site.receiver, viewer: "anna")
        let cookie = ["--cookie", "waypost_viewer=\(browser.session)"]
        let curl = try site.open("/live/", cookie, file: "live")
        // Before the proxy, which waits for it; with SIGKILL, because child processes of a test
        // have all other signals blocked.
        defer {
            kill(curl.processIdentifier, SIGKILL)
            curl.waitUntilExit()
            _ = site.port
        }
        func events() -> Int {
            ((try? site.folder.read("live")) ?? "").components(separatedBy: "data: changed").count
                - 1
        }
        try waitUntil("the first event") { events() == 1 }
        for device in ["d1", "d2"] {
            let before = events()
            #expect(try site.receiver.send(device: device) == 200)
            try waitUntil("an event") { events() > before }
        }
    }

    /// The receiver sends it for requests that came by TLS, so the proxy must not send a second one.
    @Test(arguments: installed)
    func example_sendsHSTSOnce(proxy: Proxy) throws {
        let site = try Site(proxy)
        _ = try PageClient(site.receiver, viewer: "anna")
        let answer = try site.curl("/healthz", ["--dump-header", "-"]).lowercased()
        #expect(answer.hasSuffix("\n200"), "\(answer)")
        let fields = answer.split(whereSeparator: \.isNewline).filter {
            $0.hasPrefix("strict-transport-security:")
        }
        #expect(fields == ["strict-transport-security: max-age=31536000"])
    }

    @Test(arguments: installed)
    func example_bringsBatches_andSaysWhoTheClientIs(proxy: Proxy) throws {
        let site = try Site(proxy)
        let body = String(decoding: RawRequest.batch(["a", "b"]), as: UTF8.self)
        let fields = [
            "X-Device-Token: t", "Content-Type: application/json", "Idempotency-Key: \"k\"",
        ]
        let headers = fields.flatMap { ["--header", $0] }
        func post(_ arguments: [String]) throws -> String {
            try site.curl("/api/ingest", headers + arguments)
        }
        let header = try site.curl("/login", ["--head"]).lowercased()
        #expect(
            header.components(separatedBy: "strict-transport-security: max-age=").count == 2,
            "\(header)"
        )
        let stored = try post(["--data-binary", body])
        #expect(stored.contains(#""accepted":2"#) && stored.hasSuffix("200"))
        let large = site.folder.path + "/large"
        try Data(count: 17 << 20).write(to: URL(fileURLWithPath: large))
        try Data(count: 15 << 20).write(to: URL(fileURLWithPath: large + ".part"))
        #expect(try post(["--data-binary", "@" + large]).hasSuffix("413"))
        // The receiver reads little of an unknown client's body, but its answer arrives.
        #expect(try site.curl("/api/ingest", ["--data-binary", "@\(large).part"]).hasSuffix("401"))
        // One client guesses, also under another's name; the other can still enrol.
        let code = #"{"code": "0000-0000-0000-0000", "device_id": "d1"}"#
        func guess(_ address: String, _ name: String) throws -> String {
            let forged = "X-Forwarded-For: " + name
            let arguments = ["--interface", address, "--header", forged, "--data", code]
            let answer = try site.curl("/api/device/enroll", arguments)
            return String(answer.suffix(3))
        }
        var answers: [String] = []
        for number in 0..<40 { answers.append(try guess("127.0.0.5", "10.0.0.\(number)")) }
        #expect(Set(answers) == ["403", "429"])
        #expect(try guess("127.0.0.6", "127.0.0.5") == "403")
    }

    /// Over one connection or sixty, one address gets only its share of the receiver's.
    @Test(arguments: installed)
    func slowUploadsOfOneAddress_leaveRoomForOthers(proxy: Proxy) throws {
        let site = try Site(proxy)
        let fields = [
            "X-Device-Token: t", "Content-Type: application/json", "Idempotency-Key: \"k\"",
        ]
        let headers = fields.flatMap { ["--header", $0] }
        let large = site.folder.path + "/large"
        try Data(count: 1 << 20).write(to: URL(fileURLWithPath: large))
        let slow = [
            "--parallel", "--parallel-immediate", "--parallel-max", "60", "--interface",
            "127.0.0.5", "--limit-rate", "1000", "--data-binary", "@" + large,
        ]
        let curl = try site.open("/api/ingest?[1-60]", headers + slow, file: "slow-#1")
        defer {
            kill(curl.processIdentifier, SIGKILL)
            curl.waitUntilExit()
            _ = site.port
        }
        try waitUntil("an answer to those that are too many") {
            (1...60).contains { (try? site.folder.read("slow-\($0)"))?.isEmpty == false }
        }
        let body = String(decoding: RawRequest.batch(["a"]), as: UTF8.self)
        let other = ["--interface", "127.0.0.6", "--data-binary", body]
        #expect(try site.curl("/api/ingest", headers + other).hasSuffix("200"))
    }
}
