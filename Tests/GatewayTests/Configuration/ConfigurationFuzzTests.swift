// Damaged files: any bytes give a configuration or a list of problems.
import Configuration
import Support
import Testing

import Daemon
import Setup

@Suite struct ConfigurationFuzzTests {
    private static let pieces = [
        "[", "]", "{", "}", "=", "\"", "'", "\"\"\"", "\\u", "\\UFFFFFFFF", ".", "\r", "\n", "\0",
        "[[", "]]", "1e999", "0x", "-", "_", "nan", "1979-05-27T07:32:00Z", "\u{FEFF}", "é", "#",
        ",",
        "a.b.c.d.e.f = 1\n", "[beacons.bindkeys]\n", "9223372036854775807", "true", "5m",
    ]

    private func mutated(_ original: [UInt8], by random: inout SeededRandom) -> [UInt8] {
        var bytes = original
        for _ in 0..<Int.random(in: 1...8, using: &random) where !bytes.isEmpty {
            let at = Int.random(in: 0..<bytes.count, using: &random)
            let end = min(bytes.count, at + Int.random(in: 1...40, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.removeSubrange(at..<end)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 3:
                let piece = Self.pieces.randomElement(using: &random) ?? ""
                bytes.insert(contentsOf: Array(piece.utf8), at: at)
            case 4: bytes.removeSubrange(Int.random(in: 0...at, using: &random)..<at)
            default: bytes[at] ^= 1 << UInt8.random(in: 0...7, using: &random)
            }
        }
        return bytes
    }

    private func outcome(of bytes: [UInt8]) -> Result<LoadedConfiguration, ConfigurationErrors> {
        do throws(ConfigurationErrors) {
            return .success(try Configuration.check(bytes, file: "w.toml", environment: [:]))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: [1, 2] as [UInt64])
    func mutatedFile_isReadOrRefused(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let originals = [Configuration.defaultText, ConfigurationTextTests.other].map {
            Array($0.utf8)
        }
        var counts = (taken: 0, refused: 0)
        for round in 0..<1000 {
            let bytes = mutated(originals[round % 2], by: &random)
            switch outcome(of: bytes) {
            case .success(let loaded):
                counts.taken += 1
                // An accepted configuration can be printed, and reads back the same.
                let again = outcome(of: Array(loaded.shown.utf8))
                #expect(try again.get().values == loaded.values)
            case .failure(let errors):
                counts.refused += 1
                #expect(errors.problems.allSatisfy { $0.place.hasPrefix("w.toml") })
                #expect(!errors.problems.isEmpty)
            }
        }
        // The mutations are neither all harmless nor all fatal, or they would test little.
        #expect(counts.taken > 20 && counts.refused > 200)
    }

    @Test func mutatedEnvironment_isReadOrRefused() {
        var random = SeededRandom(seed: 3)
        let keys = Configuration.table.keys
        for _ in 0..<1000 {
            guard let key = keys.randomElement(using: &random) else { continue }
            let value = key.defaultText ?? key.example ?? ""
            let bytes = mutated(Array(value.filter { $0 != "\"" }.utf8), by: &random)
            let text = String(decoding: bytes, as: UTF8.self)
            let found = problems("", [key.variable: text])
            #expect(found.count <= 2)
            #expect(found.allSatisfy { $0.hasPrefix("\(key.variable): ") })
        }
    }
}
