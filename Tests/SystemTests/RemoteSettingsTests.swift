// Settings from the real server to the real gateway: kept, refused, rolled back, removed.
import Foundation
import Support
import Testing

@Suite struct RemoteSettingsTests {
    private let device: Device
    private let id = "hut-1"

    init() throws { device = try Device() }

    private func start(_ more: String = "") throws {
        let endpoint = try device.startReceiver()
        try device.write("demo-token", "token", mode: 0o600)
        try device.configure(Self.file(id, endpoint, "\(device.folder)/token", more))
        try device.start()
        try device.waitForServer(toKnow: id)
    }

    private static func file(
        _ id: String,
        _ endpoint: String,
        _ token: String,
        _ more: String = ""
    ) -> String {
        """
        device_id = "\(id)"
        [upload]
        required = false
        endpoint = "\(endpoint)"
        token_file = "\(token)"
        interval = "1s"
        [remote]
        allow = ["settings"]
        \(more)
        [stream.weather]
        max_rate = 50.0
        """
    }

    private func server(_ arguments: String...) throws -> Outcome {
        try Process.run(
            Tree.program("waypost-receiver"),
            ["settings"] + arguments + ["--data", device.folder + "/data"]
        )
    }

    private func set(_ text: String, of id: String? = nil) throws {
        try device.write(text, "new.toml")
        let outcome = try server("set", id ?? self.id, device.folder + "/new.toml")
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    private func wanted(_ id: String? = nil) throws -> [String: Any] {
        let outcome = try server("show", id ?? self.id, "--json")
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        return object as? [String: Any] ?? [:]
    }

    private func waitForState(_ state: String, of id: String? = nil, _ one: Device? = nil) throws {
        // Records to upload: nothing else is collected here.
        try waitUntil("settings are \(state)") {
            _ = try (one ?? device).run("put", "weather", input: "{\"n\": 1}\n")
            return try wanted(id)["state"] as? String == state
        }
    }

    private func remote() throws -> [String: Any] {
        try device.status()["remote"] as? [String: Any] ?? [:]
    }

    @Test func settings_areTried_kept_shownAndRemoved() throws {
        try start()
        try set("[stream.weather]\nmax_rate = 40.0\n")
        try waitForState("kept")
        #expect(try wanted()["version"] as? Int == 1)
        #expect(try wanted()["in_force"] as? Int == 1)
        #expect(try remote()["settings_version"] as? Int == 1)
        #expect(try remote()["settings_state"] as? String == "kept")
        let shown = try device.run("config", "show")
        #expect(shown.output.contains("max_rate = 40.0  # settings 1:2"), "\(shown.output)")
        try waitUntil("the event") {
            try device.arrived("waypost_events").contains {
                $0.contains("\"settings_changed\"") && $0.contains("\"new_version\":1")
            }
        }
        // They are in force after a restart, too.
        #expect(try device.stop() == 0)
        try device.start()
        #expect(try remote()["settings_version"] as? Int == 1)

        let text = try device.run("config", "remote")
        #expect(text.output.hasPrefix("# version 1 of the server\n[stream.weather]\n"))
        let removed = try device.run("config", "remote", "--clear")
        #expect(removed.status == 0 && removed.output.hasPrefix("removed"), "\(removed.error)")
        #expect(try device.run("config", "show").output.contains("max_rate = 50.0"))
        #expect(try device.run("config", "remote").output.hasPrefix("# no settings"))
        #expect(try device.stop() == 0)
    }

    @Test func wrongSettings_areRefusedWithTheirLine() throws {
        try start()
        try set("[stream.weather]\nmax_rate = 40.0\n[upload]\ninterval = \"soon\"\n")
        try waitForState("refused")
        let message = try wanted()["message"] as? String ?? ""
        #expect(message.contains("settings 1:4: upload.interval"), "\(message)")
        #expect(try remote()["settings_state"] as? String == "none")
        #expect(try device.run("config", "show").output.contains("max_rate = 50.0"))
        #expect(try device.stop() == 0)
    }

    /// Settings whose keys the server lets pass; ten gateways at once, for a server takes 16
    /// connections of an address.
    @Test func twentyGateways_refuseWhatIsWrong() throws {
        let endpoint = try device.startReceiver()
        try device.write("demo-token", "token", mode: 0o600)
        try refuse(1...10, endpoint)
        try refuse(11...20, endpoint)
    }

    private func refuse(_ numbers: ClosedRange<Int>, _ endpoint: String) throws {
        let wrong = [
            "upload.interval = \"soon\"\n", "upload.quiet = \"00:00-23:59\"\n",
            "upload.daily_budget = \"1B\"\n", "upload.max_batch_bytes = \"1B\"\n",
            "audio.enabled = true\n", "[stream.new]\nmax_rate = 1.0\n",
            "[stream.weather]\nmax_rate = -1\n", "beacons.schedule = [\"never\"]\n",
        ]
        let fleet = try numbers.map { number in
            let one = try Device()
            try one.configure(Self.file("hut-\(number)", endpoint, "\(device.folder)/token"))
            try one.launch()
            return (id: "hut-\(number)", device: one)
        }
        for (number, one) in fleet.enumerated() {
            try device.waitForServer(toKnow: one.id)
            try set(wrong[number % wrong.count], of: one.id)
        }
        for one in fleet {
            try waitForState("refused", of: one.id, one.device)
            let remote = try one.device.status()["remote"] as? [String: Any] ?? [:]
            #expect(remote["settings_state"] as? String == "none", "\(remote)")
            #expect(try one.device.stop() == 0)
        }
    }

    /// A trial that the program does not survive: the second start is without it.
    @Test func trialWithTwoStarts_isRolledBack() throws {
        try start()
        // The one upload of the trial comes in a day.
        try set("[upload]\ninterval = \"1d\"\n[stream.weather]\nmax_rate = 40.0\n")
        try waitUntil("the trial") {
            _ = try device.run("put", "weather", input: "{\"n\": 1}\n")
            return try remote()["settings_state"] as? String == "trial"
        }
        device.killDaemon()
        try device.start()
        #expect(try remote()["settings_state"] as? String == "trial")
        device.killDaemon()
        try device.start()
        #expect(try remote()["settings_state"] as? String == "none")
        #expect(try remote()["refused_version"] as? Int == 1)
        try waitForState("rolled_back")
        #expect(try device.run("config", "show").output.contains("max_rate = 50.0"))
        #expect(try device.stop() == 0)
    }

    @Test func unsignedSettings_areRefused_ifTheDeviceHasAKey() throws {
        try start("key = \"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"")
        try set("[stream.weather]\nmax_rate = 40.0\n")
        try waitForState("refused")
        #expect((try wanted()["message"] as? String ?? "").contains("have no signature"))
        #expect(try device.stop() == 0)
    }

    @Test(.enabled(if: Tree.hasTool("minisign"), "needs minisign"))
    func signedSettings_areKept_andNoOlderOneComesBack() throws {
        let folder = device.folder
        let made = try Process.run(
            "/usr/bin/env",
            ["minisign", "-G", "-W", "-p", "\(folder)/m.pub", "-s", "\(folder)/m.key"]
        )
        #expect(made.status == 0, "\(made.error)")
        let lines = try String(contentsOfFile: "\(folder)/m.pub", encoding: .utf8)
            .split(separator: "\n")
        try start("key = \"\(lines[1])\"")
        let text = "[stream.weather]\nmax_rate = 40.0\n"
        try device.write(text, "new.toml")
        let signed = try Process.run(
            Tree.program("waypost-receiver"),
            [
                "settings", "sign", id, "\(folder)/new.toml", "--version", "3", "--key",
                "\(folder)/m.key",
            ]
        )
        #expect(signed.status == 0, "\(signed.error)")
        try device.write(signed.output, "signed.minisig")
        // minisign verifies it, too.
        try device.write("waypost-settings 1\n\(id)\n3\n\(text)", "signed")
        let verified = try Process.run(
            "/usr/bin/env",
            ["minisign", "-V", "-p", "\(folder)/m.pub", "-m", "\(folder)/signed"]
        )
        #expect(verified.status == 0, "\(verified.error)")
        let outcome = try server(
            "set",
            id,
            "\(folder)/new.toml",
            "--signature",
            "\(folder)/signed.minisig",
            "--version",
            "3"
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        try waitForState("kept")
        // The same signature under another number.
        _ = try server(
            "set",
            id,
            "\(folder)/new.toml",
            "--signature",
            "\(folder)/signed.minisig",
            "--version",
            "4"
        )
        try waitForState("refused")
        #expect(try remote()["settings_version"] as? Int == 3)
        #expect(try device.stop() == 0)
    }
}
