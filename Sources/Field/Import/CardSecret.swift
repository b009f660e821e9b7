// Parses a secret on a card, and makes the text that overwrites it.
import Host
import HTTP

enum CardSecret {
    /// Returns the secret in a file's text, as it is stored; nil if there is none (any more).
    ///
    /// Lines that begin with `#` are comments.
    static func find(in text: String, of file: CardFile) throws(CardError) -> String? {
        let lines = text.split(separator: "\n").map { trimmed($0) }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") }
        guard let first = lines.first else { return nil }
        if file == .keys {
            if let problem = StoreKeys.problem(in: text) {
                throw CardError(problem, "write ID:SECRET on one line")
            }
            return lines.joined(separator: "\n")
        }
        let alone = "write the \(file.noun) alone into the file, on one line"
        guard lines.count == 1 else { throw CardError("holds \(lines.count) lines", alone) }
        // A code is read aloud and typed, so blanks in it are ignored.
        let secret = file == .code ? first.filter { $0 != " " } : first
        guard !"\"'\u{201C}\u{201E}\u{2018}".contains(secret.first ?? " ") else {
            throw CardError("is in quotes", alone)
        }
        guard secret.utf8.count <= 4096, secret.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw CardError("holds a blank, or a character that no \(file.noun) has", alone)
        }
        return secret
    }

    private static let mark = Array(
        "# The device has it now. To give it another one, write it in place of this line.".utf8
    )

    /// Returns the bytes that overwrite a file.
    ///
    /// Exactly `count` bytes, so that they go to the same clusters of the card.
    static func overwriting(_ count: Int) -> [UInt8] {
        Array(mark.prefix(count)) + [UInt8](repeating: 32, count: max(0, count - mark.count))
    }

    /// Returns whether a power cut left a file half overwritten: the first sector is written first.
    static func isHalfOverwritten(_ bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: mark) else { return false }
        let line = bytes.dropFirst(mark.count).prefix { $0 != 10 && $0 != 13 }
        return !line.allSatisfy { $0 == 32 || $0 == 9 }
    }
}
