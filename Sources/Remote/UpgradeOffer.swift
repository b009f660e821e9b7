// A version of the program as the server offers it.
import Host
import JSON

/// The parameters of a job of the kind `upgrade`; the signature has not been checked.
package struct UpgradeOffer: Sendable, Equatable {
    private static let maxVersion = 64

    /// A version of Debian (deb-version(7)); see `isVersion`.
    let version: String
    let signature: OfferedSignature

    /// Returns nil for members of another form.
    init?(_ members: [String: JSONValue]) {
        guard case .text(let version)? = members["version"], Self.isVersion(version),
            let signature = OfferedSignature(members)
        else { return nil }
        (self.version, self.signature) = (version, signature)
    }

    /// Returns whether a text is a version, and nothing that a shell or apt could take for more.
    ///
    /// An epoch of digits and `:` may come first; then a digit, then letters, digits and `.+~-`.
    static func isVersion(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count <= maxVersion else { return false }
        let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let isDigit: (UInt8) -> Bool = { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard let rest = parts.last, let first = rest.first, isDigit(first), parts.count <= 2,
            parts.count == 1 || !parts[0].isEmpty && parts[0].allSatisfy(isDigit)
        else { return false }
        return rest.allSatisfy { byte in
            let letter = byte | 0x20
            return isDigit(byte) || ".+~-".utf8.contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) && byte >= 0x41
        }
    }

    /// The version that the program itself reports: without Debian's epoch and revision.
    static func upstream(of version: String) -> String {
        let rest = version.split(separator: ":").last ?? ""
        return String(rest.lastIndex(of: "-").map { rest[..<$0] } ?? rest)
    }

    /// The bytes that a signature for a device covers.
    func signedBytes(for device: String) -> [UInt8] {
        Array("waypost-upgrade 1\n\(device)\n\(version)\n".utf8)
    }
}
