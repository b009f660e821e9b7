// Keys that only the device may set: a card or a stick that sets them is refused.
import Configuration
import Foundation
import Host
import Status
import Support
import Testing

@testable import Daemon
@testable import Field
import Setup

@Suite struct DeviceKeysTests {
    private static let upload = "[upload]\nendpoint = \"https://x.example.org/api/ingest\"\n"

    /// Each key with a path as its value, and those that can name a file otherwise.
    private static let lines: [(key: String, value: String)] =
        Configuration.table.keys.filter { $0.allowed.hasPrefix("an absolute path") }
        .map { ($0.path, "\"/data\"") }
        + [("beacons.source", "\"btsnoop:/etc/shadow\""), ("import.stick", "false")]

    @Test func pathsOfAllParts_areAmongThem() {
        let expected = [
            "state_directory", "runtime_directory", "upload.token_file", "upload.credentials_file",
            "upload.ca_file", "metrics.textfile",
        ]
        #expect(Set(expected).isSubset(of: Self.lines.map(\.key)))
    }

    @Test(arguments: [CardImport.Medium.card, .stick])
    func keyOfTheDevice_isRefused_withItsLine(_ medium: CardImport.Medium) throws {
        for (key, value) in Self.lines {
            let device = try Device()
            let stick = TemporaryFolder("waypost")
            let text = "\(key) = \(value)\n\(Self.upload)"
            // A key of the section must not repeat the section.
            let isUpload = key.hasPrefix("upload.")
            let file =
                isUpload ? "\(Self.upload)\(key.dropFirst(7)) = \(value)\n" : text
            try file.write(toFile: device.card + "/waypost.toml", atomically: true, encoding: .utf8)
            try file.write(
                toFile: stick.path + "/waypost/waypost.toml",
                atomically: true,
                encoding: .utf8
            )
            let outcome = try device.start(medium, from: medium == .card ? nil : stick.path)
            #expect(outcome.imported == [], "\(key)")
            #expect(device.state == [nil, nil], "\(key)")
            let problem = try #require(outcome.problems.first, "\(key)")
            #expect(problem.what == "\(key): cannot be set from a card or a stick")
            #expect(problem.line == (isUpload ? 3 : 1))
            #expect(problem.remedy.hasPrefix("take the line out"))
            #expect(device.problems == outcome.problems)
        }
    }

    /// `waypost config default` writes each key with its default, which changes nothing.
    @Test func defaults_areTaken() throws {
        let device = try Device()
        let text = Configuration.defaultText.replacingOccurrences(
            of: "#endpoint = ",
            with: "endpoint = "
        )
        try device.put(text, "waypost.toml")
        #expect(try device.start() == ImportOutcome(imported: ["waypost.toml"]))
    }

    @Test func replayWithoutAFile_isTaken() throws {
        let device = try Device()
        try device.put(Self.upload + "[beacons]\nsource = \"hci1\"\n", "waypost.toml")
        #expect(try device.start().problems == [])
    }

    /// A configuration imported by an earlier release: root still prepares the service's own
    /// directories.
    @Test func importedDirectories_areIgnoredByRoot() throws {
        let stub = try StubServer(
            StubServer.posts("def answer(path, before): return 200, b'{\"token\":\"given\"}'\n"),
            ""
        )
        let device = try Device()
        let endpoint = "[upload]\nendpoint = \"http://127.0.0.1:\(stub.port)/api/ingest\"\n"
        try device.put(endpoint, "waypost.toml")
        try device.put("KNOWNCODE", "waypost.code")
        #expect(try device.start().problems == [])
        let elsewhere = device.folder.path + "/elsewhere"
        try device.folder.write(
            "state_directory = \"\(elsewhere)\"\nruntime_directory = \"\(elsewhere)\"\n\(endpoint)",
            to: "etc/imported.toml"
        )
        #expect(try CardEnrolment(device.paths, version: "1").run(on: nil).hasNewToken)
        #expect(!FileManager.default.fileExists(atPath: elsewhere))
        #expect(try DeviceID.kept(in: device.paths.state) != nil)
        stub.stop()
    }
}
