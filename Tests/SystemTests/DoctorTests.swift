// `waypost doctor` and `waypost devices`, run as a person would, in front of real parts.
import Foundation
import Testing

@Suite struct DoctorTests {
    /// A place with a receiver for uploads, a gpsd with a receiver behind it, and a microphone that is a file.
    private final class Site {
        let folder = NSTemporaryDirectory() + "wp-" + UUID().uuidString.prefix(8)
        var children: [Process] = []
        var port = ""
        var gpsPort = ""

        init(loudness: Double = 16_384) throws {
            for name in ["", "/state", "/run", "/data"] {
                try FileManager.default.createDirectory(
                    atPath: folder + name,
                    withIntermediateDirectories: true
                )
            }
            try write("demo-token", "token", mode: 0o600)
            try write("demo-token\n", "tokens")
            let sine = (0..<320_000).map { Int16((sin(Double($0) * 0.3) * loudness).rounded()) }
            let bytes = sine.flatMap {
                [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
            }
            try Data(bytes).write(to: URL(fileURLWithPath: folder + "/mic.raw"))
            try write(
                """
                pcm.null { type null }
                pcm.mic {
                    type file
                    slave.pcm { type null }
                    file /dev/null
                    infile "\(folder)/mic.raw"
                    format raw
                }
                """,
                "asound.conf"
            )
            try write("pcm.null { type null }\n", "no-mic.conf")
            try startReceiver()
            try startGPSD()
            try configure()
        }

        deinit {
            for child in children where child.isRunning { kill(-child.processIdentifier, SIGKILL) }
            try? FileManager.default.removeItem(atPath: folder)
        }

        func write(_ text: String, _ name: String, mode: Int = 0o644) throws {
            let path = folder + "/" + name
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }

        func configure(
            endpoint: String? = nil,
            gpsd: String? = nil,
            device: String = "mic",
            more: String = ""
        ) throws {
            try write(
                """
                state_directory = "\(folder)/state"
                runtime_directory = "\(folder)/run"
                [upload]
                endpoint = "\(endpoint ?? "http://127.0.0.1:\(port)/api/ingest")"
                token_file = "\(folder)/token"
                \(more)
                [beacons]
                enabled = false
                [location]
                gpsd = "127.0.0.1:\(gpsd ?? gpsPort)"
                [audio]
                device = "\(device)"

                """,
                "waypost.toml"
            )
        }

        private func startReceiver() throws {
            let output = Pipe()
            let program = DaemonTests.program.deletingLastPathComponent()
                .appendingPathComponent("waypost-receiver").path
            try start(
                program,
                [
                    "--listen", "127.0.0.1:0", "--data", "\(folder)/data", "--tokens",
                    "\(folder)/tokens",
                ],
                output
            )
            port = try number(after: "http://127.0.0.1:", in: output)
        }

        private func startGPSD() throws {
            let route = Process()
            route.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            route.arguments = [root.path + "/deploy/parts/route.py", "--minutes", "5"]
            let nmea = Pipe()
            route.standardOutput = nmea
            try route.run()
            let data = nmea.fileHandleForReading.readDataToEndOfFile()
            try data.write(to: URL(fileURLWithPath: folder + "/route.nmea"))
            gpsPort = "\(try Self.freePort())"
            try start(
                "/usr/bin/gpsfake",
                ["-q", "-P", gpsPort, "-c", "0.25", folder + "/route.nmea"],
                FileHandle.nullDevice
            )
            let deadline = Date().addingTimeInterval(30)
            while try devices().contains("gpsd") || devices().contains("refused") {
                guard Date() < deadline else { throw DaemonTests.NeverStarted() }
            }
        }

        /// What gpsd says of its devices, in words; `gpsd` while it says nothing.
        private func devices() throws -> String {
            try configure()
            let text = try run("devices").output
            let block = text.components(separatedBy: "GPSD\n").last ?? ""
            return block.contains("/dev/") ? "there" : block.contains("none") ? "gpsd" : "refused"
        }

        func start(_ program: String, _ arguments: [String], _ output: Any) throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = arguments
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            process.environment = environment
            try process.run()
            children.append(process)
        }

        func number(after mark: String, in pipe: Pipe) throws -> String {
            var text = ""
            while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty {
                text += String(decoding: data, as: UTF8.self)
                let rest = text.components(separatedBy: mark).dropFirst().first ?? ""
                if rest.contains(where: { !$0.isNumber }) {
                    return String(rest.prefix { $0.isNumber })
                }
            }
            throw DaemonTests.NeverStarted()
        }

        static func freePort() throws -> UInt16 {
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(number) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            return withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = bind(number, $0, size)
                    getsockname(number, $0, &size)
                }
                return UInt16(bigEndian: pointer.pointee.sin_port)
            }
        }

        var environment: [String: String] {
            ProcessInfo.processInfo.environment.merging([
                "ALSA_CONFIG_PATH": folder + "/asound.conf"
            ]) { $1 }
        }

        func run(
            _ arguments: [String],
            _ more: [String: String] = [:]
        ) throws -> (status: Int32, output: String) {
            let process = Process()
            process.executableURL = DaemonTests.program
            process.arguments = arguments + ["--config", folder + "/waypost.toml"]
            process.environment = environment.merging(more) { $1 }
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            let data = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: data, as: UTF8.self))
        }

        func run(_ arguments: String...) throws -> (status: Int32, output: String) {
            try run(arguments)
        }

        /// The checks of `doctor --json` by part; the last of a part that has several.
        func examine(
            _ more: [String: String] = [:]
        ) throws -> (status: Int32, checks: [String: [String: Any]]) {
            let (status, text) = try run(["doctor", "--json"], more)
            let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let checks = try #require(object?["checks"] as? [[String: Any]])
            var byPart: [String: [String: Any]] = [:]
            for check in checks { byPart[check["part"] as? String ?? ""] = check }
            return (status, byPart)
        }
    }

    private func state(_ checks: [String: [String: Any]], _ part: String) -> String? {
        checks[part]?["state"] as? String
    }

    private func words(_ checks: [String: [String: Any]], _ part: String) -> String {
        checks[part]?["what"] as? String ?? ""
    }

    @Test func partsThatWork_areOk_andTheLevelIsThatOfTheSound() throws {
        let site = try Site()
        let (status, checks) = try site.examine()
        // The gateway does not run here: that alone is a failure.
        #expect(status == 2)
        #expect(state(checks, "gateway") == "fail")
        for part in ["disk", "bluetooth", "gpsd", "receiver", "sound", "server", "token"] {
            #expect(state(checks, part) == "ok", "\(part): \(words(checks, part))")
            #expect(checks[part]?["next"] is NSNull)
        }
        // A sine of half the full scale: RMS -9.03 dBFS, peak -6.02.
        #expect(words(checks, "sound") == "mic: -9 dBFS, peak -6 dBFS")
        #expect(words(checks, "receiver").contains("D fix"))
        #expect(words(checks, "token") == "the server knows this device")
    }

    @Test func eachFault_isNamed_withItsNextStep() throws {
        let site = try Site(loudness: 0)
        try site.write("another", "token", mode: 0o600)
        let closed = "\(try Site.freePort())"
        try site.configure(gpsd: closed)
        try site.write(String(repeating: "no database ", count: 1000), "state/queue.sqlite")
        let (status, checks) = try site.examine()
        #expect(status == 2)
        for part in ["gateway", "database", "gpsd", "sound", "token"] {
            #expect(state(checks, part) == "fail", "\(part): \(words(checks, part))")
            #expect((checks[part]?["next"] as? String)?.isEmpty == false)
        }
        #expect(words(checks, "sound") == "mic: only digital silence")
        #expect(words(checks, "token").hasPrefix("E002"))
        #expect(words(checks, "gpsd").contains("Connection refused"))

        try site.write("demo-token", "token", mode: 0o644)
        try site.configure(endpoint: "http://127.0.0.1:\(closed)/api/ingest", device: "nosuch")
        let second = try site.examine().checks
        #expect(words(second, "token").contains("chmod 600"))
        #expect(words(second, "server").hasPrefix("E001"))
        #expect(words(second, "sound").contains("no such capture device"))
    }

    @Test func certificate_isToldWithItsLastDay() throws {
        let site = try Site()
        let made = Process()
        made.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        made.arguments = [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", site.folder + "/key",
            "-out", site.folder + "/cert",
        ]
        made.standardError = FileHandle.nullDevice
        try made.run()
        made.waitUntilExit()
        let output = Pipe()
        try site.start(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-cert", site.folder + "/cert", "-key",
                site.folder + "/key", "-www",
            ],
            output
        )
        let port = try site.number(after: "ACCEPT 127.0.0.1:", in: output)
        let endpoint = "https://127.0.0.1:\(port)/api/ingest"
        try site.configure(endpoint: endpoint)
        let unknown = try site.examine().checks
        #expect(state(unknown, "certificate") == "fail")
        let lastDay = ISO8601DateFormatter().string(from: Date().addingTimeInterval(3 * 86_400))
            .prefix(10)
        #expect(words(unknown, "certificate").contains("good until \(lastDay)"))
        try site.configure(endpoint: endpoint, more: "ca_file = \"\(site.folder)/cert\"")
        let known = try site.examine().checks
        #expect(state(known, "certificate") == "warn")
        #expect(words(known, "certificate").hasPrefix("good until \(lastDay), 2 days more"))
    }

    @Test func runningGateway_isAsked_whereItHasTheMicrophone() throws {
        let site = try Site()
        try site.start(
            DaemonTests.program.path,
            ["run", "--config", site.folder + "/waypost.toml"],
            FileHandle.nullDevice
        )
        let deadline = Date().addingTimeInterval(60)
        while try !site.run("status").output.contains("dBFS") {
            guard Date() < deadline else { throw DaemonTests.NeverStarted() }
        }
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
        let command = "\(DaemonTests.program.path) doctor --config \(site.folder)/waypost.toml"
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

    @Test func devices_listsWhatIsHere_asTextAndAsJSON() throws {
        let site = try Site()
        let text = try site.run("devices")
        #expect(text.status == 0)
        #expect(text.output.hasPrefix("BLUETOOTH\n"))
        #expect(text.output.contains("GPSD\n  /dev/"))
        let json = try site.run("devices", "--json").output
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(Set(try #require(object).keys) == ["bluetooth", "sound", "gpsd", "gpsd_error"])
        let receivers = object?["gpsd"] as? [[String: Any]]
        #expect((receivers?.first?["path"] as? String)?.hasPrefix("/dev/") == true)
    }
}
