// Keeps tokens and codes out of what is printed.
import Foundation
import HTTP

/// The secrets of a run, which a server may quote.
struct SecretMask {
    private var secrets: [String] = []

    init(_ secrets: [String?]) { secrets.forEach { add($0) } }

    /// Shorter ones than 4 characters are parts of words, and no secrets.
    mutating func add(_ secret: String?) {
        if let secret, secret.count >= 4 { secrets.append(secret) }
    }

    /// Returns the text with … for each secret, and for each JSON member `token`.
    func masked(_ text: String) -> String {
        let member = #"("token"\s*:\s*")(\\.|[^"\\])*"#
        return secrets.reduce(text) { $0.replacingOccurrences(of: $1, with: "…") }
            .replacingOccurrences(of: member, with: "$1…", options: .regularExpression)
    }

    /// Returns an answer's message; what it cuts off is masked before.
    func masked(_ answer: Answer) -> String {
        var shown = answer
        shown.body = Array(masked(String(decoding: answer.body, as: UTF8.self)).utf8)
        shown.location = masked(answer.location)
        return shown.message
    }
}
