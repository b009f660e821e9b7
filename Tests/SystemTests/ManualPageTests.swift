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

    /// Returns the commands of all groups of `waypost --help`.
    private func commands() throws -> Set<String> {
        let help = try Process.run(Tree.program("waypost"), ["--help"]).output
        let groups = help.components(separatedBy: "\n").filter { $0.hasSuffix(" SUBCOMMANDS:") }
        #expect(groups.count == 4)
        return groups.reduce(into: []) { $0.formUnion(names(help, after: $1)) }
    }

    @Test func everyCommand_hasAnExample_andNamesOfValues() throws {
        for command in try commands() {
            let help = try Process.run(Tree.program("waypost"), [command, "--help"]).output
            #expect(help.contains("Examples:\n  "), "waypost \(command)")
            // An option's own name says nothing: --since <since>.
            for line in help.components(separatedBy: "\n") where line.hasPrefix("  -") {
                let value = line.split(separator: "<").dropFirst().first?.prefix { $0 != ">" }
                #expect(value?.contains { $0.isLowercase } != true, "\(line)")
            }
        }
    }

    @Test func shells_completeNames() throws {
        let script = try Process.run(
            Tree.program("waypost"),
            ["--generate-completion-script", "bash"]
        ).output
        for part in ["waypost complete streams", "waypost complete surveys", "geojson", "location"]
        {
            #expect(script.contains(part), "\(part)")
        }
        let config = Tree.root.appendingPathComponent("deploy/waypost.toml").path
        let names = try Process.run(
            Tree.program("waypost"),
            ["complete", "streams", "--config", config]
        ).output
        #expect(names.hasPrefix("beacons\n") || names.contains("\nbeacons\n"))
        let none = try Process.run(
            Tree.program("waypost"),
            ["complete", "surveys", "--config", "/nowhere"]
        )
        #expect((none.status, none.output, none.error) == (0, "", ""))
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
        let commands = try commands()
        #expect(commands.contains("status"))
        let listed = try page("waypost.1").components(separatedBy: "\n*waypost ").dropFirst()
            .map { String($0.prefix { $0.isLetter }) }
        #expect(Set(listed) == commands)
    }

    @Test func commandsPage_hasEachOption() throws {
        let text = try page("waypost.1")
        for command in try commands() {
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
