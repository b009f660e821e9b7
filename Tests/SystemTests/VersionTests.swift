// The programs print the version of their packages.
import Foundation
import Support
import Testing

@Suite struct VersionTests {
    /// The first line is `waypost (VERSION) …`.
    private static func changelogVersion() throws -> String {
        let changelog = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("deploy/debian/changelog")
        let text = try String(contentsOf: changelog, encoding: .utf8)
        return String(text.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" })
    }

    @Test(arguments: ["waypost", "waypost-receiver"])
    func version_isTheChangelogs(name: String) throws {
        let output = Pipe()
        let process = try Process.started(Tree.program(name), ["--version"], output: output)
        let said = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(try String(decoding: said, as: UTF8.self) == Self.changelogVersion() + "\n")
    }
}
