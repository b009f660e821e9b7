// Reads and checks the gateway's files on a card, and changes nothing.
import CLinux
import Glibc
import Host
import HTTP
import Status
import Upload

/// A valid file of a card.
struct CardContent: Sendable, Equatable {
    /// The name on the card.
    var name: String
    /// The text that the device stores.
    var text: String
    /// Bytes on the card.
    var size: Int
    /// SHA-256 of the decoded text, so that other line endings are not a change.
    var digest: String
}

/// The gateway's files on a card.
struct CardFolder: Sendable {
    let path: String
    private(set) var contents: [CardFile: CardContent] = [:]
    private(set) var problems: [CardFailure] = []
    /// Names and sizes of secrets that a power cut left half overwritten.
    private(set) var halfOverwritten: [(name: String, size: Int)] = []

    /// Reads all files; throws only if the folder cannot be listed.
    init(_ path: String) throws(SystemError) {
        self.path = path
        let names = try list(path)
        for file in CardFile.allCases {
            let mine = names.filter(file.isNamed)
            if mine.count > 1 {
                let list = mine.joined(separator: " and ")
                problems.append(CardFailure(file: mine[0], "\(list) are both there", "keep one"))
            } else if let name = mine.first {
                read(file, name)
            }
        }
        reportMisnamed(names)
        if let token = contents[.token], contents[.code] != nil {
            let what = "is there beside an enrolment code"
            problems.append(CardFailure(file: token.name, what, "keep one of the two"))
        }
    }

    /// Reports files whose names nearly match a missing configuration or secret.
    private mutating func reportMisnamed(_ names: [String]) {
        let isThere = { (file: CardFile) in names.contains(where: file.isNamed) }
        let secrets = CardFile.allCases.filter(\.isSecret)
        let missing =
            if !isThere(.configuration) {
                ["waypost"]
            } else {
                secrets.contains(where: isThere) ? [] : secrets.map(\.rawValue)
            }
        for name in names where missing.contains(where: { name.lowercased().hasPrefix($0 + ".") }) {
            let isKnown = CardFile.allCases.contains { $0.isNamed(name) }
            guard !isKnown, !CardReport.isOurs(name), isFile(name) else { continue }
            let known = CardFile.allCases.map(\.rawValue).joined(separator: ", ")
            let shown = printable(name)
            problems.append(
                CardFailure(file: shown, "has a name that is not read", "rename it: \(known)")
            )
        }
    }

    private func isFile(_ name: String) -> Bool { fileKind("\(path)/\(name)") == S_IFREG }

    private mutating func read(_ file: CardFile, _ name: String) {
        do throws(CardError) {
            let bytes = try bytes(of: name, limit: file.limit)
            if file.isSecret, CardSecret.isHalfOverwritten(bytes) {
                return halfOverwritten.append((name, bytes.count))
            }
            let text = try CardText.decode(bytes)
            guard let kept = file.isSecret ? try CardSecret.find(in: text, of: file) : text
            else { return }
            contents[file] = CardContent(
                name: name,
                text: kept,
                size: bytes.count,
                digest: try Self.digest(kept)
            )
        } catch {
            problems.append(
                CardFailure(file: name, line: error.line, error.what, error.remedy)
            )
        }
    }

    private func bytes(of name: String, limit: Int) throws(CardError) -> [UInt8] {
        guard isFile(name) else {
            throw CardError("is not a regular file", "write a text file of this name")
        }
        let file: SmallFile
        do {
            file = try SmallFile.read("\(path)/\(name)", limit: limit)
        } catch {
            let again = "check the card on a computer, then save the file again"
            throw CardError("cannot be read: \(error.reason)", again)
        }
        guard file.bytes.count <= limit else {
            throw CardError(
                "is larger than \(limit / 1024) KiB",
                "write only what is needed into it"
            )
        }
        return file.bytes
    }

    private static func digest(_ text: String) throws(CardError) -> String {
        do {
            var sum = try SHA256()
            try sum.append(Array(text.utf8))
            return try sum.finish()
        } catch {
            throw CardError("cannot be compared: \(error)", "start the device again")
        }
    }
}
