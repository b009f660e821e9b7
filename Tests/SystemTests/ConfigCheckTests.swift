// `waypost config check`: what would keep a device from collecting, though its file is valid.
import Foundation
import Support
import Testing

@Suite struct ConfigCheckTests {
    private let device: Device

    init() throws { device = try Device() }

    private func check(_ tables: String) throws -> Outcome {
        try device.configure(tables)
        return try device.run("config", "check")
    }

    private func upload(_ keys: String) -> String {
        "[upload]\nendpoint = \"https://server.invalid/api/ingest\"\n\(keys)"
    }

    @Test func tokenFile_mustBeThere_andItsOwnersAlone() throws {
        let path = device.folder + "/token"
        let keys = upload("token_file = \"\(path)\"")
        let missing = try check(keys)
        #expect(missing.status == 1)
        #expect(missing.error.contains("token file \(path): No such file or directory"))
        try device.write("token\n", "token", mode: 0o644)
        let open = try check(keys)
        #expect(open.status == 1)
        #expect(open.error.contains("run: chmod 600 \(path)"))
        try device.write("token\n", "token", mode: 0o600)
        let fine = try check(keys)
        #expect(fine.status == 0, "\(fine.error)")
        #expect(fine.output == "\(device.config): ok\n")
    }

    /// `systemctl reload` was silent about an invalid file; the unit's own lines are run here.
    @Test func reload_failsOnAnInvalidFileOnly() throws {
        let unit = try String(
            contentsOfFile: Tree.path("deploy/systemd/waypost.service"),
            encoding: .utf8
        )
        let lines = unit.split(separator: "\n").filter { $0.hasPrefix("ExecReload=") }
        try #require(lines.count == 2)
        let first = lines[0].dropFirst("ExecReload=/bin/sh -c '".count).dropLast()
            .replacing("$$", with: "$").replacing("/usr/bin/waypost", with: Tree.program("waypost"))
            .replacing("/etc/waypost/waypost.toml", with: device.config)
        func reload() throws -> Outcome { try Process.run("/bin/sh", ["-c", String(first)]) }
        #expect(try reload().status == 0)
        // It runs without this file, and says so.
        try device.configure(upload("token_file = \"\(device.folder)/none\""))
        #expect(try reload().status == 0)
        try device.write("[beacons]\nenabled = false\n[beacons]\n", "waypost.toml")
        let refused = try reload()
        #expect(refused.status != 0)
        #expect(
            refused.error.contains("[beacons] redefines the table that begins in line 1"),
            "\(refused.error)"
        )
    }

    @Test func authority_mustBeAFileOfCertificates() throws {
        let keys = upload("ca_file = \"\(device.folder)/ca.pem\"")
        let missing = try check(keys)
        #expect(missing.status == 1)
        #expect(missing.error.contains("upload.ca_file: \(device.folder)/ca.pem: No such file"))
        try device.write("not a certificate\n", "ca.pem")
        #expect(try check(keys).error.contains("is not a PEM file"))
    }

    @Test func soundDevice_mustBeOneThatALSADefines() throws {
        try device.write("pcm.site { type null }\n", "asound.conf")
        let check = { (name: String) in
            try device.configure("[audio]\ndevice = \"\(name)\"")
            return try Process.run(
                "/usr/bin/env",
                ["ALSA_CONFIG_PATH=\(device.folder)/asound.conf", Tree.program("waypost")]
                    + ["config", "check", "--config", device.config]
            )
        }
        let unknown = try check("sitte")
        #expect(unknown.status == 1)
        #expect(unknown.error.contains("ALSA has no device \"sitte\""))
        for name in ["site", "plug:site", "hw:CARD=Absent", "usb-1-1.3"] {
            let known = try check(name)
            #expect(known.status == 0, "\(name): \(known.error)")
        }
    }
}
