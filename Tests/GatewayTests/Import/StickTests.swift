// Sticks: whether the device allows them, and what may be mounted as one.
import Configuration
import Foundation
import Status
import Support
import Testing

@testable import Daemon
@testable import Field
import Setup

@Suite struct StickTests {
    private static func configuration(_ host: String) -> String {
        "[upload]\nendpoint = \"https://\(host).example.org/api/ingest\"\n"
    }

    private func stick() throws -> TemporaryFolder {
        let stick = TemporaryFolder("waypost")
        try stick.write(Self.configuration("stick"), to: "waypost/waypost.toml")
        try stick.write("token-1\n", to: "waypost/waypost.token")
        return stick
    }

    @Test func disallowedStick_changesNothing_andIsReported() throws {
        let (device, stick) = (try Device(), try stick())
        try device.folder.write("[import]\nstick = false\n", to: "etc/waypost.toml")
        let before = try stick.contents(of: "waypost")
        let outcome = try device.start(.stick, from: stick.path)
        #expect(outcome.imported == [])
        #expect(outcome.problems.map(\.file) == ["the stick"])
        #expect(outcome.problems.first?.what.contains("import.stick") == true)
        #expect(device.problems == outcome.problems)
        #expect(device.state == [nil, nil])
        #expect(try stick.contents(of: "waypost") == before)
        // A stick without a folder for this device is ignored.
        let other = TemporaryFolder("photos")
        #expect(try device.start(.stick, from: other.path) == ImportOutcome())
    }

    /// A card's configuration replaces the device's, except for this key.
    @Test func card_doesNotGiveThePermissionBack() throws {
        let (device, stick) = (try Device(), try stick())
        try device.folder.write("[import]\nstick = false\n", to: "etc/waypost.toml")
        try device.put("import.stick = true\n" + Self.configuration("card"), "waypost.toml")
        #expect(try device.start().imported == ["waypost.toml"])
        #expect(try device.start(.stick, from: stick.path).imported == [])
        #expect(device.state == ["import.stick = true\n" + Self.configuration("card"), nil])
        let path = device.paths.configuration
        let loaded = try Configuration.load(path: path, environment: [:])
        #expect(!loaded.values.allowsSticks)
        #expect(loaded.shown.contains("stick = false  # \(path):2\n"))
        #expect(loaded.warnings == [])
        try device.folder.write(
            "[import]\nstick = false\n[led]\nname = \"off\"\n",
            to: "etc/waypost.toml"
        )
        let warned = try Configuration.load(path: path, environment: [:]).warnings
        #expect(warned.first?.message.contains("is not read, except for import.stick") == true)
    }

    /// A stick may repair a device's file that is wrong elsewhere; if this key cannot be read,
    /// sticks are denied.
    @Test(arguments: [
        ("[import]\nstick = \"no\"\n", false), ("[import]\nstick = fals", false), ("]", false),
        ("[audio]\nrate = 7\n[import]\nstick = false\n", false), ("[audio]\nrate = 7\n", true),
        ("[import]\nstick = true\n", true), ("", true),
        // Below another section's header it is another key.
        ("[audio]\nimport.stick = false\n", false), ("[stream.x]\nimport.stick = false\n", false),
        ("[audoi]\nimport.stick = false\n", false), ("stick = false\n", false),
        ("[import]\nimport.stick = false\n", false), ("import = false\n", false),
        ("import.sticks = false\n", false), ("[[import]]\nstick = false\n", false),
        ("[imports]\nstick = false\n", false),
        ("import.stick = true\n[led]\nimport.stick = false\n", false),
        ("import.stick = false\n" + "#" + String(repeating: " ", count: 70_000), false),
    ])
    func wrongFile_allowsSticks_ifTheKeyIsReadable(
        text: String,
        isAllowed: Bool
    ) throws {
        let (device, stick) = (try Device(), try stick())
        try device.folder.write(text, to: "etc/waypost.toml")
        let outcome = try device.start(.stick, from: stick.path)
        #expect(outcome.imported.isEmpty != isAllowed, "\(text)")
        #expect(outcome.problems.isEmpty == isAllowed)
    }

    /// With an imported configuration in force, nothing else reads that file.
    @Test func keyBelowAnotherSection_isReported_withItsLine() throws {
        let (device, stick) = (try Device(), try stick())
        try device.put(Self.configuration("card"), "waypost.toml")
        #expect(try device.start().imported == ["waypost.toml"])
        let path = try device.folder.write(
            "[audio]\nrate = 48000\nimport.stick = false\n",
            to: "etc/waypost.toml"
        )
        let outcome = try device.start(.stick, from: stick.path)
        #expect(outcome.imported == [])
        let reason = "\(path):3: audio.import.stick: is not import.stick"
        #expect(outcome.problems.first?.what.contains(reason) == true)
        #expect(device.problems == outcome.problems)
        let loaded = try Configuration.load(path: path, environment: [:])
        #expect(!loaded.values.allowsSticks)
        #expect(loaded.warnings.contains { $0.description.hasPrefix(reason) })
    }

    /// A file system with links, owners and devices, on a device that could be a stick.
    private final class Disk {
        let folder = TemporaryFolder("mount")
        let device: String

        init?() {
            let image = folder.path + "/image"
            guard TemporaryMount.isAllowed,
                (try? Data(count: 4 << 20).write(to: URL(fileURLWithPath: image))) != nil,
                Self.run("mkfs.ext4", "-q", image)?.status == 0,
                let made = Self.run("losetup", "--find", "--show", image), made.status == 0
            else { return nil }
            device = made.output.trimmingCharacters(in: .newlines)
        }

        deinit { _ = Self.run("losetup", "--detach", device) }

        static func run(_ words: String...) -> Outcome? { try? Process.run("/usr/bin/env", words) }
    }

    @Test(.enabled(if: Disk() != nil, "needs the right to make a block device"))
    func unit_mountsNoFileSystemWithLinks() throws {
        let disk = try #require(Disk())
        let mount = disk.folder.path + "/mount"
        #expect(Disk.run("mount", disk.device, mount)?.status == 0)
        #expect(Disk.run("umount", mount)?.status == 0)
        let path = Tree.path("deploy/systemd/waypost-stick@.service")
        let mark = "ExecStartPre=-+"
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(mark) && $0.contains("/mount ") })
        let command = line.dropFirst(mark.count)
            .replacingOccurrences(of: "/dev/%I", with: disk.device)
            .replacingOccurrences(of: "/run/waypost-stick/%i", with: mount)
        let words = command.split(separator: " ").map(String.init)
        #expect(words.suffix(2) == [disk.device, mount])
        #expect(try Process.run(words[0], Array(words.dropFirst())).status != 0)
        #expect(Disk.run("umount", mount)?.status != 0)
    }
}
