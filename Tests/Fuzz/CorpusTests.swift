// Each input of the corpus through its target: what the fuzzer once found stays found.
import Foundation
import Testing

@Suite struct CorpusTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("corpus")

    private static func inputs(_ name: String) throws -> [[UInt8]] {
        let files = try FileManager.default.contentsOfDirectory(
            at: folder.appendingPathComponent(name),
            includingPropertiesForKeys: nil
        )
        return try files.map { Array(try Data(contentsOf: $0)) }
    }

    @Test(arguments: FuzzTarget.all.map(\.name))
    func everyInput_isTakenOrRefused(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let inputs = try Self.inputs(name)
        #expect(inputs.count >= 3, "a target without a corpus tests nothing")
        for input in inputs { target.run(input) }
        // The bounds of a function are at its ends.
        for input in inputs {
            target.run([])
            target.run(Array(input.prefix(input.count / 2)))
            target.run(input + input)
        }
    }

    @Test func eachCorpus_hasItsTarget() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
        #expect(Set(FuzzTarget.all.map(\.name)).count == FuzzTarget.all.count)
    }
}
