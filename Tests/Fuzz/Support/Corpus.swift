// Runs the stored inputs of a target: an input that the fuzzer once found stays covered without libFuzzer.
import Foundation

/// The inputs under Tests/Fuzz/corpus, a folder per target.
package enum Corpus {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("corpus")

    /// The names of all targets that have a corpus.
    package static func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
    }

    /// Throws where a target has fewer than three inputs: it would test nothing.
    package static func inputs(_ name: String) throws -> [[UInt8]] {
        let files = try FileManager.default.contentsOfDirectory(
            at: folder.appendingPathComponent(name),
            includingPropertiesForKeys: nil
        )
        guard files.count >= 3 else { throw CocoaError(.fileNoSuchFile) }
        return try files.map { Array(try Data(contentsOf: $0)) }
    }

    /// Runs a target with each input, and with what is cut from it and joined of it.
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
