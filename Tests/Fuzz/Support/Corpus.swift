// Runs the stored inputs of a target, so that earlier findings stay covered without libFuzzer.
import Foundation

/// The inputs under Tests/Fuzz/corpus, one folder per target.
package enum Corpus {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("corpus")

    /// Returns the names of all targets that have a corpus.
    package static func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
    }

    /// Returns the inputs of a target; throws if there are fewer than three, which would test
    /// nothing.
    package static func inputs(_ name: String) throws -> [[UInt8]] {
        let files = try FileManager.default.contentsOfDirectory(
            at: folder.appendingPathComponent(name),
            includingPropertiesForKeys: nil
        )
        guard files.count >= 3 else { throw CocoaError(.fileNoSuchFile) }
        return try files.map { Array(try Data(contentsOf: $0)) }
    }

    /// Runs a target with each input, with truncated inputs and with joined ones.
    package static func run(_ target: FuzzTarget) throws {
        let inputs = try inputs(target.name)
        for input in inputs { target.run(input) }
        // Parsers fail at the ends of their input.
        for input in inputs {
            target.run([])
            target.run(Array(input.prefix(input.count / 2)))
            target.run(input + input)
        }
    }
}
