// Checks the names that `setup` writes into a proxy's configuration.
import Glibc
import Host
import ServerBase

/// A host that devices and browsers use for the server: a DNS name or an IPv4 address.
///
/// Contains only letters, digits, `.` and `-`, so it is safe in a proxy's configuration.
struct SiteName {
    let text: String

    init?(_ text: String) {
        let text = text.lowercased()
        guard Self.isName(text) else { return nil }
        self.text = text
    }

    static let allowed = "a name such as data.example.org, in ASCII (xn--… for others)"

    private static func isName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= 253, labels.allSatisfy(isLabel) else { return false }
        // A name whose last label is a number is read as an address.
        guard labels.last?.utf8.allSatisfy(\.isDigit) == true else { return true }
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
            && label.utf8.allSatisfy { $0.isDigit || $0.isLetter || $0 == 45 }
    }

    /// True if no public authority issues a certificate for it, and Caddy uses its own.
    var isPrivate: Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1 || !text.contains(".")
            || [".local", ".localhost", ".internal", ".home.arpa", ".lan", ".test"]
                .contains(where: text.hasSuffix)
    }

    /// Returns whether a text is a mail address that is safe in a proxy's configuration.
    static func isMail(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && (1...64).contains(parts[0].utf8.count)
            && !parts[0].hasPrefix("-")
            && parts[0].lowercased().utf8.allSatisfy {
                $0.isDigit || $0.isLetter || ".+-_".utf8.contains($0)
            }
            && SiteName(String(parts[1])) != nil
    }
}
