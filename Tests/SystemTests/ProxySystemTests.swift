// The Bluetooth proxy of a real gateway, asked by Home Assistant's own library.
import Foundation
import Support
import Testing

@Suite struct ProxySystemTests {
    private static let hasLibrary =
        (try? Process.run(Tree.python, ["-c", "import aioesphomeapi"]).status) == 0

    private let device: Device
    private let port = freePort()
    private let controller = freePort()

    init() throws { device = try Device() }

    /// The filter denies every beacon: the proxy comes before it.
    private func configure(_ keys: String = "") throws {
        try device.configure(
            """
            [beacons]
            source = "h4:127.0.0.1:\(controller)"
            deny = ["*"]
            max_rate = 0.001
            [proxy]
            esphome = true
            key_file = "\(device.folder)/proxy.key"
            listen = "127.0.0.1:\(port)"
            name = "waypost-roof"
            area = "Roof"
            \(keys)
            """
        )
    }

    private func newKey(_ arguments: String...) throws -> String {
        let outcome = try Process.run(
            Tree.program("waypost"),
            ["config", "proxy-key", "--config", device.config] + arguments
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = outcome.output.split(separator: "\n")
        let line = try #require(lines.first { $0.contains("Home Assistant: ") })
        return String(try #require(line.split(separator: " ").last))
    }

    private func proxy() throws -> [String: Any] {
        (try device.status()["outputs"] as? [String: [String: Any]])?["proxy"] ?? [:]
    }

    @Test(.enabled(if: hasLibrary, "needs aioesphomeapi (PyPI)"))
    func allAdvertisements_reachHomeAssistantsLibrary() throws {
        try configure()
        let key = try newKey()
        try device.start()
        let peer = try Process.run(
            Tree.python,
            [Tree.path("Tests/Peers/proxy.py"), "\(port)", key, "\(controller)", "5000"]
        )
        #expect(peer.status == 0, "\(peer.error)")
        let result = try #require(
            try JSONSerialization.jsonObject(with: peer.data) as? [String: Any]
        )
        #expect(result["sent"] as? Int == 6000)
        #expect(result["same"] as? Bool == true)
        #expect(result["again"] as? Bool == true)
        #expect(result["states"] as? [[Int]] == [[2, 0]])
        #expect(result["wrong key"] as? String == "InvalidEncryptionKeyAPIError")
        #expect(result["no key"] as? String == "RequiresEncryptionAPIError")
        #expect(result["fifth"] as? String == "HandshakeAPIError")
        #expect(result["after one left"] as? String == "accepted")
        let info = try #require(result["info"] as? [String: Any])
        #expect(info["name"] as? String == "waypost-roof")
        #expect(info["suggested_area"] as? String == "Roof")
        #expect(info["bluetooth_proxy_feature_flags"] as? Int == 97)
        #expect(info["entities"] as? [Int] == [0, 0])
        #expect(try proxy()["state"] as? String == "loaded")
        #expect(try proxy()["dropped"] as? Int == 0)
        #expect(try proxy()["errors"] as? Int == 3)
        let text = try device.run("status").output
        #expect(text.contains("proxy     running, "))
    }

    @Test func key_isMadeOnce_andForItsOwnerAlone() throws {
        try configure()
        let path = device.folder + "/proxy.key"
        #expect(try device.run("config", "check").error.contains("proxy-key` makes it"))
        let key = try newKey()
        #expect(Data(base64Encoded: key)?.count == 32)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try newKey() == key)
        #expect(try device.run("config", "check").status == 0)
        let replaced = try newKey("--replace")
        #expect(replaced != key)
        try device.write(replaced, "proxy.key", mode: 0o640)
        #expect(try device.run("config", "check").error.contains("run: chmod 600 \(path)"))
        // ESPHome's clients take a key of zeros for none.
        for key in ["short", String(repeating: "A", count: 43) + "="] {
            try device.write("\(key)\n", "proxy.key", mode: 0o600)
            let broken = try device.run("config", "check")
            #expect(broken.status == 1)
            #expect(broken.error.contains("\(path): does not hold 32 bytes as base64"))
        }
    }

    /// The gateway works without its proxy, says why, and a reload starts it.
    @Test func missingKey_isAnErrorOfTheProxyAlone() throws {
        try configure()
        try device.start()
        #expect(try proxy()["state"] as? String == "error")
        #expect(try device.run("status").output.contains("proxy-key` makes it"))
        let key = try newKey()
        device.signal(SIGHUP)
        try waitUntil("the proxy") { try proxy()["state"] as? String == "loaded" }
        #expect(try newKey("--replace") != key)
        device.signal(SIGHUP)
        #expect(try device.stop() == 0)
    }

    @Test func wrongSettings_areExplained() throws {
        try device.configure("[proxy]\nesphome = true\n[beacons]\nenabled = true")
        let keyless = try device.run("config", "check")
        #expect(keyless.status == 78)
        #expect(keyless.error.contains("`sudo waypost config proxy-key` makes one"))
        try configure()
        try device.configure(
            "[proxy]\nesphome = true\nkey_file = \"/x\"\nlisten = \"pi.local:6053\"\nname = \"A b\""
        )
        let wrong = try device.run("config", "check")
        for text in ["pi.local:6053 is not a numeric", "not a valid name", "beacons.enabled"] {
            #expect(wrong.error.contains(text), "\(wrong.error)")
        }
    }
}
