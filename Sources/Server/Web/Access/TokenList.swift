// The tokens of the devices that may send, from a person's file.
import Foundation
import Host
import ServerBase

/// The tokens that devices may use.
///
/// The person's file stays as it is. The data folder gets a copy of it with digests for tokens,
/// which is used once the person has deleted the file.
package struct TokenList: Sendable {
    /// The prefix of a digest.
    private static let mark = "sha256:"
    /// The copy in the data folder; its first line names the person's file.
    private static let copyName = ".receiver-tokens"

    /// Nil without a token file.
    private let known: KnownTokens?
    private let acceptsAny: Bool
    /// A message about the file for the operator.
    package private(set) var note: String?

    /// Reads a file with lines `TOKEN` or `TOKEN DEVICE_ID`; a word with `#` starts a comment.
    ///
    /// A token may be written as `sha256:` and its digest. `folder`: the data folder; nil without
    /// one. `acceptsAny`: any token is valid if there is no file.
    package init(file: String?, folder: String?, acceptsAny: Bool) throws {
        self.acceptsAny = acceptsAny
        guard let file else {
            known = nil
            return
        }
        let copy = folder.map { "\($0)/\(Self.copyName)" }
        let head = "# \(URL(fileURLWithPath: file).path)"
        let lines: [String]
        do {
            (lines, note) = try Self.read(file, head, copy)
        } catch {
            throw StartError("--tokens \(file) cannot be read", error)
        }
        known = Self.parse(lines)
        guard note == nil, let copy, let folder else { return }
        do {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            let text = ([head] + lines).joined(separator: "\n")
            try SmallFile.replace(copy, Array(text.utf8), mode: 0o600)
        } catch {
            note = "\(copy): cannot be written, so \(file) has to stay (\(error))"
        }
    }

    /// Returns the lines with digests for tokens: of the file or, if it is gone, of its copy.
    private static func read(_ file: String, _ head: String, _ copy: String?) throws
        -> (lines: [String], note: String?)
    {
        do throws(SystemError) {
            let bytes = try SmallFile.read(file, limit: 1 << 24, wait: true).bytes
            return (lines(of: bytes).map { hashed($0[...]) }, nil)
        } catch {
            guard error.code == ENOENT, let copy,
                let bytes = try? SmallFile.read(copy, limit: 1 << 25).bytes,
                lines(of: bytes).first == head
            else { throw Failure(error.reason) }
            return (
                Array(lines(of: bytes).dropFirst()),
                "\(file) is gone; its tokens stay valid by the copy in \(copy): delete that, too, to end them"
            )
        }
    }

    private static func lines(of bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self)
            .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
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

    /// True if any token is valid.
    package var isOpen: Bool { known == nil && acceptsAny }

    /// Returns whether the list has a token for exactly this device.
    package func has(_ device: String) -> Bool { known?.has(device) ?? false }

    /// Returns the device that a token is bound to, "" for any; nil if it is not in the list.
    package func device(of token: GivenSecret) -> String? { known?.device(of: token) }
}
