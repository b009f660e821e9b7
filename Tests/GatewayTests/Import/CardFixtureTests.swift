// Imports of many cards: the files in force after valid ones, the report on invalid ones.
import Foundation
import Status
import Support
import Testing

@testable import Daemon
@testable import Field

@Suite struct CardFixtureTests {
    /// Each `Tests/Fixtures/cards/NAME` is a card with its expected result beside it, which
    /// WAYPOST_TEST_RECORD rewrites.
    private static let names: [String] = {
        let all = try? FileManager.default.contentsOfDirectory(
            atPath: Tree.path("Tests/Fixtures/cards")
        )
        return (all ?? []).filter { !$0.contains(".") }.sorted()
    }()

    // Not in the macro's argument: Swift 6.0 crashes on a closure there.
    private static let good = names.filter { $0.hasPrefix("good-") }
    private static let bad = names.filter { !$0.hasPrefix("good-") }

    private func expect(_ text: String?, _ name: String) throws {
        let path = Tree.path("Tests/Fixtures/cards/\(name)")
        if ProcessInfo.processInfo.environment["WAYPOST_TEST_RECORD"] != nil, let text {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        }
        #expect(try text == String(contentsOfFile: path, encoding: .utf8), "\(name)")
    }

    @Test(arguments: good)
    func rightCard_isInForce_andKeepsNoSecret(_ name: String) throws {
        let device = try Device(card: name)
        let outcome = try device.start()
        #expect(outcome.problems == [])
        #expect(device.errors == nil)
        try expect(device.text("etc/imported.toml"), "\(name).imported")
        let secrets = [
            "credstore/waypost.token", "credstore/waypost.s3", "etc/import/waypost.code",
        ]
        let kept = secrets.compactMap { path in device.text(path).map { "\(path): \($0)" } }
        if !kept.isEmpty { try expect(kept.joined(separator: "\n"), "\(name).secrets") }
        for file in try device.folder.files(in: "card") where file.count > 12 {
            guard let text = device.text("card/\(file)"), !file.lowercased().contains("toml")
            else { continue }
            #expect(text.hasPrefix("# The device"), "\(file)")
        }
        #expect(try device.start() == ImportOutcome())
    }

    @Test(arguments: bad)
    func wrongCard_changesNothing_andSaysWhatToDo(_ name: String) throws {
        let device = try Device(card: name)
        let before = try device.folder.contents(of: "card")
        let outcome = try device.start()
        #expect(!outcome.problems.isEmpty)
        #expect(device.problems == outcome.problems)
        try expect(device.errors, "\(name).errors")
        let text = try #require(device.errors)
        #expect(text.components(separatedBy: "\n").dropLast().allSatisfy { $0.hasSuffix("\r") })
        var after = try device.folder.contents(of: "card")
        after["waypost-errors.txt"] = nil
        #expect(after == before)
        guard name != "nothing-in-it" else { return }
        #expect(outcome.imported == [])
        #expect(device.state == [nil, nil])
    }

    /// A card is written only if its report changes: each write is wear, and a risk of damage.
    @Test func sameCard_isNotWrittenAgain() throws {
        let device = try Device(card: "many-errors")
        try device.start()
        let writes = Locked(0)
        var files = StepFiles()
        files.onStep = { _, _ in writes.update { $0 += 1 } }
        try device.start(.card, from: nil, files)
        #expect(writes.value == 0)
    }

    @Test func mendedCard_isInForce_andItsErrorsAreGone() throws {
        let device = try Device(card: "unknown-key")
        try device.start()
        #expect(device.errors?.contains("did you mean upload.endpoint?") == true)
        try device.put(
            "[upload]\r\nendpoint = \"https://x.example.org/api/ingest\"\r\n",
            "waypost.toml"
        )
        #expect(try device.start().imported == ["waypost.toml"])
        #expect(device.errors == nil)
        #expect(device.problems == [])
    }
}

extension TemporaryFolder {
    func files(in name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(path)/\(name)").sorted()
    }

    func contents(of name: String) throws -> [String: Data] {
        let files = try files(in: name)
        return Dictionary(
            uniqueKeysWithValues: files.map {
                ($0, FileManager.default.contents(atPath: "\(path)/\(name)/\($0)") ?? Data())
            }
        )
    }
}
