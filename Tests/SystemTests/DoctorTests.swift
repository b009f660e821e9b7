// `waypost doctor` and `waypost devices`, run as a person would, on real parts.
import Foundation
import Glibc
import Support
import Testing

@Suite struct DoctorTests {
    private func state(_ checks: [String: [String: Any]], _ part: String) -> String? {
        checks[part]?["state"] as? String
    }

    private func words(_ checks: [String: [String: Any]], _ part: String) -> String {
        checks[part]?["what"] as? String ?? ""
    }

    @Test func partsThatWork_areOk_andTheLevelIsThatOfTheSound() throws {
        let site = try Site()
        let (status, checks) = try site.examine()
        // The gateway is not running here, which is a failure.
        #expect(status == 2)
        #expect(state(checks, "gateway") == "fail")
        for part in ["disk", "bluetooth", "gpsd", "receiver", "sound", "server", "token"] {
            #expect(state(checks, part) == "ok", "\(part): \(words(checks, part))")
            #expect(checks[part]?["next"] is NSNull)
        }
        // A sine at half of full scale: RMS -9.03 dBFS, peak -6.02.
        #expect(words(checks, "sound") == "mic: -9 dBFS, peak -6 dBFS")
        #expect(words(checks, "receiver").contains("D fix"))
        #expect(words(checks, "token").hasPrefix("the server knows this device"))
    }

    @Test func eachFault_isNamed_withItsNextStep() throws {
        let site = try Site(loudness: 0)
        try site.write("another", "token", mode: 0o600)
        let closed = "\(freePort())"
        try site.configure(gpsd: closed)
        try site.write(String(repeating: "no database ", count: 1000), "state/queue.sqlite")
        let (status, checks) = try site.examine()
        #expect(status == 2)
        for part in ["gateway", "database", "gpsd", "sound", "token"] {
            #expect(state(checks, part) == "fail", "\(part): \(words(checks, part))")
            #expect((checks[part]?["next"] as? String)?.isEmpty == false)
        }
        #expect(words(checks, "sound") == "mic: no signal")
        #expect(words(checks, "token").hasPrefix("E002"))
        #expect(words(checks, "gpsd").contains("Connection refused"))

        try site.write("demo-token", "token", mode: 0o644)
        try site.configure(endpoint: "http://127.0.0.1:\(closed)/api/ingest", device: "nosuch")
        let second = try site.examine().checks
        #expect(words(second, "token").contains("chmod 600"))
        #expect(words(second, "server").hasPrefix("E001"))
        #expect(words(second, "sound").contains("no such capture device"))
    }

    /// libasound runs commands from its configuration, so root listens as the state directory's
    /// owner.
    @Test(.enabled(if: geteuid() == 0)) func root_listensAsTheServicesUser() throws {
        let site = try Site()
        let nobody: uid_t = 65_534
        try #require(chmod(site.folder, 0o755) == 0)
        try #require(chown(site.folder + "/state", nobody, nobody) == 0)
        #expect(words(try site.examine().checks, "sound") == "mic: -9 dBFS, peak -6 dBFS")
        try #require(chmod(site.folder + "/mic.raw", 0o600) == 0)
        let refused = try site.examine().checks
        #expect(state(refused, "sound") == "fail")
        #expect(words(refused, "sound").contains("Permission denied"))
    }

    @Test func certificate_isReportedWithExpiryDate() throws {
        let site = try Site()
        try makeCertificate(in: site.folder)
        let output = Pipe()
        try site.start(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-cert", site.folder + "/cert", "-key",
                site.folder + "/key", "-www",
            ],
            output
        )
        let port = try output.number(after: "ACCEPT 127.0.0.1:")
        let endpoint = "https://127.0.0.1:\(port)/api/ingest"
        try site.configure(endpoint: endpoint)
        let unknown = try site.examine().checks
        #expect(state(unknown, "certificate") == "fail")
        let lastDay = ISO8601DateFormatter().string(from: Date().addingTimeInterval(3 * 86_400))
            .prefix(10)
        #expect(words(unknown, "certificate").contains("good until \(lastDay)"))
        try site.configure(endpoint: endpoint, more: "ca_file = \"\(site.folder)/cert\"")
        let known = try site.examine().checks
        // It lives for three days: nothing to renew yet.
        #expect(state(known, "certificate") == "ok")
        #expect(words(known, "certificate") == "verified, good until \(lastDay)")
    }

    /// The unit sets the proxy, which alone can resolve the server's name; the person's shell has
    /// neither.
    @Test func server_isAskedThroughTheProxyOfTheGateway() throws {
        let proxy = try StubServer(
            StubServer.posts("def answer(path, before): return 200, b\"{}\""),
            ""
        )
        defer { proxy.stop() }
        let device = try Device()
        try device.write("token", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "http://server.invalid/api/ingest"
            allow_plaintext = true
            token_file = "\(device.folder)/token"
            """
        )
        device.environment = ["http_proxy": "http://name:secret@127.0.0.1:\(proxy.port)"]
        try device.start()
        let text = try device.run("doctor").output
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let path =
            "server.invalid can be reached through the proxy 127.0.0.1:\(proxy.port) (http_proxy of the gateway)"
        #expect(words.contains(path), "\(text)")
        #expect(words.contains("the server knows this device"), "\(text)")
        #expect(!text.contains("secret"))
    }

    @Test func runningGateway_isAsked_whereItHasTheMicrophone() throws {
        let site = try Site()
        try site.start(
            Tree.program("waypost"),
            ["run", "--config", site.folder + "/waypost.toml"],
            FileHandle.nullDevice
        )
        try waitUntil("a level") { try site.run("status").output.contains("dBFS") }
        let checks = try site.examine(["ALSA_CONFIG_PATH": site.folder + "/no-mic.conf"]).checks
        #expect(state(checks, "gateway") != "fail")
        #expect(state(checks, "database") == "ok")
        #expect(state(checks, "sound") == "ok")
        #expect(
            words(checks, "sound").hasPrefix(
                "mic is held by the gateway, which hears: 16 kHz mono, -9 dBFS"
            )
        )
    }

    @Test func text_isPlain_butOnATerminal() throws {
        let site = try Site()
        let plain = try site.run("doctor").output
        #expect(!plain.contains("\u{1B}"))
        #expect(plain.contains("ok    sound       mic: -9 dBFS, peak -6 dBFS\n"))
        #expect(
            plain.hasSuffix("1 failed, 2 to look at\n")
                || plain.hasSuffix("1 failed, 3 to look at\n")
        )
        #expect(plain.split(separator: "\n").allSatisfy { $0.count <= 80 })

        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/script")
        let command = "\(Tree.program("waypost")) doctor --config \(site.folder)/waypost.toml"
        process.arguments = ["-qc", command, "/dev/null"]
        process.environment = site.environment.filter { $0.key != "NO_COLOR" }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let screen = String(decoding: data, as: UTF8.self)
        // (60 - 9.03) / 60 of 40 columns.
        #expect(screen.contains("sound [#################################.......] -9 dBFS"))
        #expect(screen.contains("\u{1B}[1;31mfail"))
    }

    private static let devices: Set = ["bluetooth", "sound", "gpsd", "gpsd_error", "serial"]

    @Test func devices_listsWhatIsHere_asTextAndAsJSON() throws {
        let site = try Site()
        let text = try site.run("devices")
        #expect(text.status == 0)
        #expect(text.output.hasPrefix("BLUETOOTH\n"))
        #expect(text.output.contains("GPSD\n  /dev/"))
        let json = try site.run("devices", "--json").output
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(Set(try #require(object).keys) == Self.devices)
        let receivers = object?["gpsd"] as? [[String: Any]]
        #expect((receivers?.first?["path"] as? String)?.hasPrefix("/dev/") == true)
    }
}
