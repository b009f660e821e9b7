// Changes to the texts of minisign's files.
import Foundation
import Support

/// The lines of a file, with changes.
struct Mutation {
    var lines: [String]

    init(_ text: String) { lines = text.split(separator: "\n").map(String.init) }

    /// The text of a file with these lines.
    var text: String { lines.map { $0 + "\n" }.joined() }

    /// The bytes that a line has in base64.
    func bytes(_ line: Int) -> [UInt8] { Array(Data(base64Encoded: lines[line]) ?? Data()) }

    /// Returns the text with other bytes in base64 on a line.
    func replacing(_ line: Int, with bytes: [UInt8]) -> String {
        var changed = self
        changed.lines[line] = Data(bytes).base64EncodedString()
        return changed.text
    }

    /// Returns the texts in which one bit of one of the bytes of a line was flipped.
    func flips(_ line: Int) -> [String] {
        let bytes = bytes(line)
        return bytes.indices.map { index in
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 8)
            return replacing(line, with: changed)
        }
    }

    /// Returns a text with a few random changes to its bytes.
    static func random(_ text: String, _ random: inout SeededRandom) -> String {
        var bytes = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let start = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, start + Int.random(in: 0...4, using: &random))
            let interesting = Array("=\r\n\t\0 A+/é\u{202E}".utf8) + [0xFF]
            let inserted = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? interesting.randomElement(using: &random) ?? 0
                    : UInt8.random(in: 0...255, using: &random)
            }
            bytes.replaceSubrange(start..<end, with: inserted)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
