// Who may send: the tokens of devices.
import Foundation

/// The tokens that devices may use.
struct TokenList: Sendable {
    /// The device that a token is bound to, or "" for any; nil: every token that is not empty is taken.
    private let devices: [String: String]?

    /// A line is `TOKEN` or `TOKEN DEVICE_ID`, `#` starts a comment; without a file every token is taken.
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
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard let token = words.first else { continue }
            devices[String(token)] = words.count > 1 ? String(words[1]) : ""
        }
        return devices
    }

    /// The device that a token is bound to, "" for any; nil when the token is not known.
    func device(of token: String) -> String? {
        guard !token.isEmpty else { return nil }
        guard let devices else { return "" }
        return devices[token]
    }
}
