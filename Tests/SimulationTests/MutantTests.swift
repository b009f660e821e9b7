import Foundation
import Support
import Testing

/// The faults that `Tests/Simulation/count-mutants` puts back: each still fits the sources.
@Suite struct MutantTests {
    private static let folder = Tree.root.appendingPathComponent("Tests/Simulation/mutants")

    @Test func everyMutant_fitsTheSources() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).sorted()
        #expect(names.count > 18)
        for name in names {
            let patch = Self.folder.appendingPathComponent(name).path
            let arguments = ["git", "-C", Tree.root.path, "apply", "--check", patch]
            let outcome = try Process.run("/usr/bin/env", arguments)
            #expect(outcome.status == 0, "\(name): \(outcome.error)")
        }
    }
}
