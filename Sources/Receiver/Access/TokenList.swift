// The tokens of the devices that may send, from a file that stores their digests.
import Foundation
import Host

/// The tokens that devices may use.
package struct TokenList: Sendable {
    /// The prefix of a digest in the file.
    private static let mark = "sha256:"

    /// Nil without a token file.
    private let known: KnownTokens?
    /// A message about the file for the operator, after it was rewritten or could not be.
    package private(set) var note: String?

    /// Reads a file with lines `TOKEN` or `TOKEN DEVICE_ID`; a word with `#` starts a comment.
    ///
    /// Replaces tokens in plain text by `sha256:` and their digest.
    package init(file: String?) throws {
        guard let file else {
            known = nil
            return
        }
        do {
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            let hashed = lines.map { Self.hashed($0) }
            known = Self.parse(hashed)
            if hashed != lines.map(String.init) { note = Self.replace(file, with: hashed) }
        } catch {
            throw StartFailure("--tokens \(file) cannot be read", error)
        }
    }

    /// Returns the line with its token replaced by the digest.
    private static func hashed(_ line: Substring) -> String {
        let blanks = line.prefix(while: \.isWhitespace)
        let token = line[blanks.endIndex...].prefix { !$0.isWhitespace }
        guard !token.isEmpty, !token.hasPrefix("#"), digest(token) == nil else {
            return String(line)
        }
        return blanks + mark + hex(GivenSecret(text: String(token)).digest)
            + line[token.endIndex...]
    }

    /// Returns the digest that a word holds; nil if it is a plain token.
    private static func digest(_ word: Substring) -> [UInt8]? {
        guard word.hasPrefix(mark), let digest = bytes(hex: word.dropFirst(mark.count)),
            digest.count == 32
        else { return nil }
        return digest
    }

    private static func parse(_ lines: [String]) -> KnownTokens {
        var known = KnownTokens()
        for line in lines {
            let words = line.split(whereSeparator: \.isWhitespace).prefix { !$0.hasPrefix("#") }
            guard let first = words.first, let digest = digest(first) else { continue }
            known.add(digest: digest, device: words.count > 1 ? String(words[1]) : "")
        }
        return known
    }

    /// Replaces the file with one of the same owner and permissions; returns a message about the result.
    private static func replace(_ file: String, with lines: [String]) -> String {
        let path = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        let text = Array(lines.joined(separator: "\n").utf8)
        do {
            try SmallFile.replace(path, text, mode: 0o600, keepsOwner: true)
            return "\(file): its tokens are kept as SHA-256 from now on"
        } catch {
            return "\(file): its tokens stay in the clear (\(error))"
        }
    }

    /// True if there is no list.
    package var isOpen: Bool { known == nil }

    /// Returns whether the list has a token for exactly this device.
    func has(_ device: String) -> Bool { known?.has(device) ?? false }

    /// Returns the device that a token is bound to, "" for any; nil if it is not in the list.
    package func device(of token: GivenSecret) -> String? { known?.device(of: token) }
}
