// Who may send: the tokens of devices.
import Foundation

/// The tokens that devices may use.
struct TokenList: Sendable {
    /// The device that a token is bound to, or "" for any; nil without a list.
    private let devices: [String: String]?

    /// A line is `TOKEN` or `TOKEN DEVICE_ID`, a word that begins with `#` starts a comment.
    init(file: String?) throws {
        guard let file else {
            devices = nil
            return
        }
        do {
            devices = Self.parse(try String(contentsOfFile: file, encoding: .utf8))
        } catch {
            throw StartFailure("--tokens \(file) cannot be read", error)
        }
    }

    private static func parse(_ text: String) -> [String: String] {
        var devices: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(whereSeparator: \.isWhitespace).prefix { !$0.hasPrefix("#") }
            guard let token = words.first else { continue }
            devices[String(token)] = words.count > 1 ? String(words[1]) : ""
        }
        return devices
    }

    /// There is no list.
    var isOpen: Bool { devices == nil }

    /// The device that a token is bound to, "" for any; nil when the list does not have it.
    func device(of token: String) -> String? { devices?[token] }
}
