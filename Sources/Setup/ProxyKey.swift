// Reads the key of the Bluetooth proxy from a file that only its owner can read.
package import Host
package import HTTP

/// The 32 bytes that a client of the Bluetooth proxy must know, as base64 in a file.
package struct ProxyKey: Equatable, Sendable {
    package static let length = 32

    package static let file = SecretFile(
        name: "proxy key file",
        secret: "proxy key",
        key: "proxy.key_file",
        credential: "waypost.proxy",
        limit: 1024,
        advice: "`sudo waypost config proxy-key` makes it"
    )

    package let bytes: [UInt8]

    /// Makes a new key from random bytes of the kernel.
    package static func random() -> Self {
        var random = SystemRandomNumberGenerator()
        return Self(bytes: (0..<length).map { _ in .random(in: .min ... .max, using: &random) })
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads and checks a file; throws a `Failure` with the file, the problem and the remedy.
    package static func read(_ path: String) throws(Failure) -> Self {
        let text = try file.read(path, [:], for: nil, onlyBound: false).bytes
        guard let key = Self(text: text) else {
            throw Failure(
                "proxy key file \(path): does not hold 32 bytes as base64 (44 characters), or only zeros; "
                    + "`sudo waypost config proxy-key --replace` makes a new key"
            )
        }
        return key
    }

    /// Parses base64 with its padding (RFC 4648, section 4), with white space around it.
    package init?(text: [UInt8]) {
        let blanks = " \t\r\n".utf8
        let digits = text.drop { blanks.contains($0) }
        let line = digits.prefix { !blanks.contains($0) }
        guard line.count == 44, digits.dropFirst(44).allSatisfy({ blanks.contains($0) }) else {
            return nil
        }
        guard let bytes = base64Decoded(Array(line)) else { return nil }
        self.init(bytes: Array(bytes.prefix(Self.length)))
        // Also refuses a missing `=` and bits that no byte holds: other programs do.
        guard Array(base64.utf8) == Array(line) else { return nil }
        // ESPHome's clients take a key of zeros for none.
        guard self.bytes.contains(where: { $0 != 0 }) else { return nil }
    }

    /// The text that Home Assistant asks for.
    package var base64: String {
        var (encoder, text) = (Base64Encoder(), [UInt8]())
        encoder.encode(bytes, into: &text)
        encoder.finish(into: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
