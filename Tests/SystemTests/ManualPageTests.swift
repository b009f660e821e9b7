// The manual pages match the real program, and are valid pages.
import Foundation
import Support
import Testing

@Suite struct ManualPageTests {
    private static let folder = Tree.root
        .appendingPathComponent("deploy/man")

    private func page(_ name: String) throws -> String {
        try String(
            contentsOf: Self.folder.appendingPathComponent("\(name).scd"),
            encoding: .utf8
        )
    }

    /// Returns the first words of the lines after a heading of `--help`.
    private func names(_ help: String, after heading: String) -> Set<String> {
        let lines = help.components(separatedBy: "\n")
        let start = lines.firstIndex { $0.hasPrefix(heading) } ?? lines.endIndex
        let listed = lines[start...].dropFirst().prefix { !$0.isEmpty }
        let names = listed.filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
            .compactMap { $0.split(separator: " ").first.map(String.init) }
        return Set(names)
    }

    @Test func commandsPage_hasTheCommandsThatThereAre() throws {
        let help = try Process.run(Tree.program("waypost"), ["--help"]).output
        let commands = names(help, after: "SUBCOMMANDS:")
        #expect(commands.contains("status"))
        let listed = try page("waypost.1").components(separatedBy: "\n*waypost ").dropFirst()
            .map { String($0.prefix { $0.isLetter }) }
        #expect(Set(listed) == commands)
    }

    @Test func commandsPage_hasEachOption() throws {
        let text = try page("waypost.1")
        let help = try Process.run(Tree.program("waypost"), ["--help"]).output
        for command in names(help, after: "SUBCOMMANDS:") {
            let options = names(
                try Process.run(Tree.program("waypost"), [command, "--help"]).output,
                after: "OPTIONS:"
            )
            let entry =
                text.components(separatedBy: "\n*waypost \(command)*").last?
                .components(separatedBy: "\n\n").first ?? ""
            for option in options.subtracting(["--config", "--version", "-h,"]) {
                #expect(entry.contains("*\(option)*"), "waypost \(command)")
            }
        }
    }

    /// Needs scdoc(1) and mandoc(1), which deploy/test installs.
    @Test(arguments: ["waypost.1", "waypost.toml.5", "waypost-protocol.7", "waypost-receiver.1"])
    func page_isWellFormed(name: String) throws {
        let path = Self.folder.appendingPathComponent("\(name).scd").path
        // scdoc begins each paragraph with .PP, even after a heading, which has begun one already.
        let script = """
            set -o pipefail
            scdoc <'\(path)' | mandoc -T lint -W warning | grep -v 'paragraph macro' || true
            """
        let outcome = try Process.run("/bin/bash", ["-c", script])
        #expect(outcome.output + outcome.error == "")
    }
}
