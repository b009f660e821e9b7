// A card, the real importer, a real server that issues codes, and the gateway with the result.
import Foundation
import Host
import Support
import Testing

/// A device with a card in it, and a server.
private final class CardFixture {
    private let temporary = TemporaryFolder("card", "etc", "run", "state", "data")
    var folder: String { temporary.path }
    private var children: [Process] = []
    private var gateway = Process()
    private(set) var port = ""

    init() throws { try startReceiver() }

    deinit {
        for child in children + [gateway] where child.isRunning { child.killAndWait() }
    }

    func startReceiver() throws {
        let output = Pipe()
        let arguments = ["--listen", "127.0.0.1:\(port.isEmpty ? "0" : port)"] + data + ["--quiet"]
        children.append(
            try .started(Tree.program("waypost-receiver"), arguments, output: output)
        )
        var line = ""
        while !line.hasSuffix("\n") {
            let byte = try output.fileHandleForReading.read(upToCount: 1) ?? Data()
            guard !byte.isEmpty else { throw NeverHappened(what: "the receiver's first line") }
            line += String(decoding: byte, as: UTF8.self)
        }
        port = String(line.split(separator: ":")[2].prefix { $0.isNumber })
    }

    func stopReceiver() { children.removeFirst().killAndWait() }

    func stopGateway() { gateway.killAndWait() }

    private var data: [String] { ["--data", folder + "/data"] }
    var endpoint: String { "http://127.0.0.1:\(port)/api/ingest" }

    func newCode(_ options: String...) throws -> String {
        try Process.run(Tree.program("waypost-receiver"), ["codes", "add"] + options + data).output
    }

    func put(_ text: String, _ name: String) throws { try temporary.write(text, to: name) }

    func text(_ name: String) -> String? { try? temporary.read(name) }

    /// Three lines, as in the README.
    func configuration(_ endpoint: String) -> String {
        """
        [upload]\r
        endpoint = "\(endpoint)"\r
        [beacons]\r
        enabled = false\r
        [location]\r
        enabled = false\r
        [audio]\r
        device = "nosuchdevice"\r

        """
    }

    func run(_ arguments: [String], _ environment: [String: String] = [:]) throws -> Outcome {
        try Process.run(
            Tree.program("waypost"),
            arguments + ["--config", folder + "/etc/waypost.toml"],
            environment: environment.merging(directories) { $1 }
        )
    }

    /// As systemd sets them for the service: a card cannot.
    private var directories: [String: String] {
        ["STATE_DIRECTORY": folder + "/state", "RUNTIME_DIRECTORY": folder + "/run"]
    }

    private var takingOver: [String] {
        ["import", folder + "/card", "--credentials", folder + "/credstore"]
            + ["--runtime", folder + "/run", "--state", folder + "/state"]
    }

    func takeOver(_ options: String...) throws -> Outcome { try takeOver(options) }

    func takeOver(_ options: [String]) throws -> Outcome { try run(takingOver + options) }

    func startAsking() throws -> Process {
        let process = try Process.started(
            Tree.program("waypost"),
            takingOver + ["--online", "--config", folder + "/etc/waypost.toml"]
        )
        children.append(process)
        return process
    }

    /// As the unit does: with the credential from systemd.
    func startGateway() throws {
        let credentials = ["CREDENTIALS_DIRECTORY": folder + "/credstore"]
        gateway = try .started(
            Tree.program("waypost"),
            ["run", "--config", folder + "/etc/waypost.toml"],
            environment: credentials.merging(directories) { $1 }
        )
    }

    func status() throws -> [String: Any] {
        let text = try run(["status", "--json"]).output
        return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
    }

    /// True if the source was opened, which fails here, so that it collects.
    func isCollecting() throws -> Bool {
        let sources = try status()["sources"] as? [String: [String: Any]]
        return sources?["audio"]?["state"] as? String == "error"
    }
}

@Suite struct CardSystemTests {
    /// A proxy that loses the answer to the first code, or waits for the file named after the port.
    private static let badWay = """
        import os, socket, sys, threading, time
        port, _, go = sys.argv[1].partition(":")
        lost = threading.Event()
        def serve(client):
            with client, socket.create_connection(("127.0.0.1", int(port))) as server:
                request = client.recv(65536)
                while b"\\r\\n\\r\\n" not in request: request += client.recv(65536)
                isCode = b"/enroll" in request
                head, _, body = request.partition(b"\\r\\n\\r\\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                while len(body) < length: body += client.recv(65536)
                server.sendall(head.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\\r\\n\\r\\n" + body)
                answer = b""
                while piece := server.recv(65536): answer += piece
                if isCode and not lost.is_set():
                    lost.set()
                    if not go: return
                    open(go + ".asked", "w").close()
                    while not os.path.exists(go): time.sleep(0.02)
                client.sendall(answer)
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        while True: threading.Thread(target=serve, args=[listener.accept()[0]]).start()
        """

    @Test(arguments: [true, false])
    func answerToACodeThatIsLost_canBeAskedForAgain(byCard: Bool) throws {
        let fixture = try CardFixture()
        let way = try StubServer(Self.badWay, fixture.port)
        let code = try fixture.newCode().trimmingCharacters(in: .newlines)
        let endpoint = "http://127.0.0.1:\(way.port)/api/ingest"
        let configuration = fixture.configuration(endpoint)
        let ask: () throws -> Outcome
        if byCard {
            try fixture.put(configuration, "card/waypost.toml")
            try fixture.put(code, "card/waypost.code")
            #expect(try fixture.takeOver().status == 0)
            ask = { try fixture.takeOver("--online") }
        } else {
            try fixture.put(configuration, "etc/waypost.toml")
            ask = { try fixture.run(["enroll", "--endpoint", endpoint, "--code", code]) }
        }
        let lost = try ask()
        #expect(lost.status == (byCard ? 1 : 2))
        #expect(lost.error.contains("E001"), "\(lost.error)")
        let asked = try ask()
        #expect(asked.status == 0, "\(asked.error)")
        #expect(fixture.text(byCard ? "credstore/waypost.token" : "etc/token") != nil)
        #expect(fixture.text("state/asked-token") == nil)
        way.stop()
    }

    /// A late answer of the old server must not be stored for the new one.
    @Test func stickThatComesWhileAServerIsAsked_isWhatCounts() throws {
        let fixture = try CardFixture()
        let go = fixture.folder + "/go"
        let way = try StubServer(Self.badWay, "\(fixture.port):\(go)")
        try fixture.put(
            fixture.configuration("http://127.0.0.1:\(way.port)/api/ingest"),
            "card/waypost.toml"
        )
        try fixture.put(try fixture.newCode(), "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        let online = try fixture.startAsking()
        try waitUntil("the question") { FileManager.default.fileExists(atPath: go + ".asked") }
        try fixture.put(fixture.configuration(fixture.endpoint), "card/waypost.toml")
        // The server has enrolled the device, which never got the answer.
        try fixture.put(try fixture.newCode("--replace"), "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        try fixture.put("", "go")
        online.waitUntilExit()
        #expect(online.terminationStatus == 1)
        #expect(fixture.text("credstore/waypost.token") == nil)
        let asked = try fixture.takeOver("--online")
        #expect(asked.status == 0, "\(asked.error)")
        let server = "http://127.0.0.1:\(fixture.port)"
        #expect(fixture.text("credstore/waypost.token")?.hasSuffix("\n# for \(server)\n") == true)
        way.stop()
    }

    @Test func cardWithACode_makesADeviceThatItsServerKnows() throws {
        let fixture = try CardFixture()
        let code = try fixture.newCode()
        try fixture.put(fixture.configuration(fixture.endpoint), "card/WAYPOST.TOML.txt")
        try fixture.put(code, "card/waypost.code")
        fixture.stopReceiver()
        // A boot without a network, which nothing waits for.
        #expect(try fixture.takeOver().status == 0)
        #expect(fixture.text("card/waypost.code")?.contains(code.prefix(9)) == false)
        try fixture.startGateway()
        #expect(try fixture.takeOver("--online").status == 1)
        #expect(fixture.text("card/waypost-errors.txt")?.contains("E001") == true)
        try waitUntil("status reports it") {
            let reasons = try fixture.status()["reasons"] as? [String] ?? []
            return reasons.contains { $0.contains("on the card") && $0.contains("E001") }
        }
        #expect(try !fixture.isCollecting())
        // The network is up.
        try fixture.startReceiver()
        let asked = try fixture.takeOver("--online")
        #expect(asked.status == 0, "\(asked.error)")
        #expect(fixture.text("card/waypost-errors.txt") == nil)
        let server = "http://127.0.0.1:\(fixture.port)"
        #expect(fixture.text("credstore/waypost.token")?.hasSuffix("\n# for \(server)\n") == true)
        // The unit restarts the service, which gets its credentials at its start.
        fixture.stopGateway()
        try fixture.startGateway()
        try waitUntil("collecting") { try fixture.isCollecting() }
        #expect(try fixture.takeOver().output == "")
        #expect(try fixture.takeOver("--online").status == 0)
        // Another server, set by hand: this one would even accept the token.
        fixture.stopGateway()
        let other = "http://localhost:\(fixture.port)/api/ingest"
        try fixture.put(fixture.configuration(other), "etc/imported.toml")
        try fixture.startGateway()
        try waitUntil("status reports it") {
            let errors = try fixture.status()["recent_errors"] as? [[String: Any]] ?? []
            return errors.contains {
                ($0["message"] as? String)?.contains("is not sent to") == true
            }
        }
        #expect(try !fixture.isCollecting())
    }

    /// A server that writes the user of each connection into a file, and gives and accepts a token.
    private static let userRecorder = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                port = ":%04X" % self.client_address[1]
                rows = [line.split() for line in open("/proc/net/tcp")]
                with open(sys.argv[1], "a") as file:
                    file.write(next(row[7] for row in rows if row[1].endswith(port)) + "\\n")
                self.rfile.read(int(self.headers["Content-Length"]))
                body = b'{"token": "given-token"}'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *words): pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    /// Root parses no HTTP of a server that a card names.
    @Test(.enabled(if: geteuid() == 0, "only root can give up its rights"))
    func server_isAskedWithTheRightsOfTheService() throws {
        let fixture = try CardFixture()
        let nobody: UInt32 = 65_534
        #expect(chown(fixture.folder + "/state", nobody, nobody) == 0)
        let server = try StubServer(Self.userRecorder, fixture.folder + "/users")
        let endpoint = "http://127.0.0.1:\(server.port)/api/ingest"
        try fixture.put(fixture.configuration(endpoint), "card/waypost.toml")
        try fixture.put("some-code", "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        let asked = try fixture.takeOver("--online")
        #expect(asked.status == 0, "\(asked.error)")
        #expect(fixture.text("users") == "\(nobody)\n\(nobody)\n")
        #expect(fixture.text("credstore/waypost.token")?.hasPrefix("given-token\n") == true)
        // A failure in that process is reported as before.
        server.stop()
        try fixture.put("another-code", "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        let failed = try fixture.takeOver("--online")
        #expect(failed.status == 1)
        #expect(failed.error.contains("E001"), "\(failed.error)")
    }

    @Test func otherServersToken_isReportedOnCardAndInStatus() throws {
        let fixture = try CardFixture()
        _ = try fixture.newCode()
        try fixture.put(fixture.configuration(fixture.endpoint), "card/waypost.toml")
        try fixture.put("token-of-another-server\r\n", "card/waypost.token")
        #expect(try fixture.takeOver().status == 0)
        let asked = try fixture.takeOver("--online")
        #expect(asked.status == 2)
        #expect(asked.error.contains("E002"))
        let reported = try #require(fixture.text("card/waypost-errors.txt"))
        #expect(reported.contains("E002") && reported.contains("ask whoever runs the server"))
        #expect(!reported.contains("token-of-another-server"))
        // The next card has the right server.
        let code = try fixture.newCode()
        try fixture.put(code, "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        #expect(try fixture.takeOver("--online").status == 0)
        #expect(fixture.text("card/waypost-errors.txt") == nil)
    }

    @Test func codeThatWasUsed_isRefused_andNotTriedForEver() throws {
        let fixture = try CardFixture()
        let code = try fixture.newCode().trimmingCharacters(in: .newlines)
        try fixture.put(fixture.configuration(fixture.endpoint), "etc/waypost.toml")
        let first = try fixture.run(["enroll", "--endpoint", fixture.endpoint, "--code", code])
        #expect(first.status == 0, "\(first.error)")
        #expect(first.output.contains("the server accepts this device"))
        let again = try fixture.run(["enroll", "--endpoint", fixture.endpoint, "--code", code])
        #expect(again.status == 2)
        #expect(again.error.contains("not known, was used, or is too old"))
        // On a card: `enroll` has set upload.token_file, which the card's configuration omits.
        try fixture.put(fixture.configuration(fixture.endpoint), "card/waypost.toml")
        try fixture.put(code, "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        #expect(try fixture.takeOver("--online").status == 2)
        #expect(fixture.text("card/waypost-errors.txt")?.contains("was used") == true)
    }

    /// The code would be used up, and its token lost.
    @Test func codeIsNotExchanged_whereItsTokenCannotBeStored() throws {
        let fixture = try CardFixture()
        try fixture.put(fixture.configuration(fixture.endpoint), "card/waypost.toml")
        try fixture.put(try fixture.newCode(), "card/waypost.code")
        #expect(try fixture.takeOver().status == 0)
        let inTheWay = fixture.folder + "/etc/import/gathering"
        try FileManager.default.createDirectory(
            atPath: inTheWay + "/folder/folder",
            withIntermediateDirectories: true
        )
        #expect(try fixture.takeOver("--online").status == 1)
        try FileManager.default.removeItem(atPath: inTheWay)
        let asked = try fixture.takeOver("--online")
        #expect(asked.status == 0, "\(asked.error)")
        #expect(fixture.text("credstore/waypost.token") != nil)
    }

    /// A fake systemctl: a file sets the service's state, and calls are logged.
    private static let systemctl = """
        #!/bin/sh
        folder=$(dirname "$0")
        case "$*" in *is-failed*) exec test -e "$folder/failed" ;; esac
        echo "$*" >>"$folder/told"
        """

    /// A service that a wrong configuration stopped has failed; systemd's try-restart does not
    /// start it.
    @Test func goodStick_startsFailedService_butNotStoppedOne() throws {
        let fixture = try CardFixture()
        try fixture.put(Self.systemctl, "systemctl")
        chmod(fixture.folder + "/systemctl", 0o755)
        let restart = ["--restart", "--systemctl", fixture.folder + "/systemctl"]
        let asks = "--no-block restart waypost-enroll.service\n"
        for (number, word) in ["try-restart", "start"].enumerated() {
            let configuration = fixture.configuration(fixture.endpoint) + "# \(number)\n"
            try fixture.put(configuration, "card/waypost.toml")
            try fixture.put("", "told")
            #expect(try fixture.takeOver(restart).status == 0)
            #expect(fixture.text("told") == "--no-block \(word) waypost.service\n" + asks)
            try fixture.put("", "failed")
        }
        // An unchanged configuration restarts nothing.
        try fixture.put("", "told")
        #expect(try fixture.takeOver(restart).status == 0)
        #expect(fixture.text("told") == "")
    }

    /// 1970: no certificate is valid yet, and this program does not check the date.
    @Test func brokenCardAtTheFirstBoot_leavesAGatewayThatSaysSo() throws {
        let fixture = try CardFixture()
        let folders = fixture.configuration(fixture.endpoint).replacingOccurrences(
            of: "endpoint",
            with: "#"
        )
        try fixture.put(folders, "etc/waypost.toml")
        try fixture.put("[upload]\r\nendpont = \"https://x\"\r\n", "card/waypost.toml")
        let outcome = try fixture.takeOver()
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("did you mean upload.endpoint?"))
        try fixture.startGateway()
        try waitUntil("status reports it") {
            let report = try fixture.status()
            let isRunning = (report["daemon"] as? [String: Any])?["running"] as? Bool == true
            let reasons = report["reasons"] as? [String] ?? []
            return isRunning && reasons.contains { $0.contains("waypost.toml:2") }
        }
    }
}
