// Who may send: the tokens of devices, in a file that keeps their digests.
import CLinux
import Foundation
import Glibc
import Host

/// The tokens that devices may use.
package struct TokenList: Sendable {
    /// What stands before a digest in the file.
    private static let mark = "sha256:"

    /// Nil without a list.
    private let known: KnownTokens?
    /// What the person who started it should know of the file.
    package private(set) var note: String?

    /// A line is `TOKEN` or `TOKEN DEVICE_ID`, a word that begins with `#` starts a comment.
    ///
    /// Tokens that stand there as they are get replaced by `sha256:` and their digest.
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

    /// The line with its token as a digest.
    private static func hashed(_ line: Substring) -> String {
        let blanks = line.prefix(while: \.isWhitespace)
        let token = line[blanks.endIndex...].prefix { !$0.isWhitespace }
        guard !token.isEmpty, !token.hasPrefix("#"), digest(token) == nil else {
            return String(line)
        }
        return blanks + mark + hex(GivenSecret(text: String(token)).digest)
            + line[token.endIndex...]
    }

    /// The digest that a word is; nil where it is a token itself.
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

    /// Puts the digests in the place of the tokens, all of them or none; what to say of it.
    private static func replace(_ file: String, with lines: [String]) -> String {
        let path = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        let next = path + ".new"
        do {
            var status = stat()
            guard stat(path, &status) == 0 else { throw Trouble("stat", path) }
            let text = Array(lines.joined(separator: "\n").utf8)
            unlink(next)
            try write(text, next, status)
            guard rename(next, path) == 0 else { throw Trouble("rename", next) }
            try syncFolder(URL(fileURLWithPath: path).deletingLastPathComponent().path)
            return "\(file): its tokens are kept as SHA-256 from now on"
        } catch {
            unlink(next)
            return "\(file): its tokens stay in the clear (\(error))"
        }
    }

    /// With the owner and the rights that the file had.
    private static func write(_ text: [UInt8], _ path: String, _ status: stat) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Trouble("open", path) }
        defer { close(number) }
        guard geteuid() != 0 || fchown(number, status.st_uid, status.st_gid) == 0,
            fchmod(number, status.st_mode & 0o777) == 0,
            Glibc.write(number, text, text.count) == text.count, fsync(number) == 0
        else { throw Trouble("write", path) }
    }

    /// There is no list.
    package var isOpen: Bool { known == nil }

    /// Whether the list has a token for this device alone.
    func has(_ device: String) -> Bool { known?.has(device) ?? false }

    /// The device that a token is bound to, "" for any; nil when the list does not have it.
    package func device(of token: GivenSecret) -> String? { known?.device(of: token) }
}
