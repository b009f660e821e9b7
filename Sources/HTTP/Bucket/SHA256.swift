// SHA-256 from libcrypto, for object stores and to detect changed files.
import CCrypto
import Host

/// Hashes bytes in pieces of any length; owns libcrypto's context.
package struct SHA256: ~Copyable {
    private static let length = 32
    private let context: OpaquePointer

    /// Throws a Failure if libcrypto has no memory or no SHA-256.
    package init() throws {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1
        else { throw Failure("libcrypto: no SHA-256, or no memory for it") }
        self.context = context
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    package mutating func append(_ bytes: [UInt8]) throws {
        try Self.check(EVP_DigestUpdate(context, bytes, bytes.count), "EVP_DigestUpdate")
    }

    /// Returns the digest as 64 lower-case hexadecimal digits.
    package consuming func finish() throws -> String {
        var bytes = [UInt8](repeating: 0, count: Self.length)
        try Self.check(EVP_DigestFinal_ex(context, &bytes, nil), "EVP_DigestFinal_ex")
        return hex(bytes)
    }

    private static func check(_ code: Int32, _ function: String) throws {
        guard code == 1 else { throw Failure("libcrypto: \(function) failed (\(code))") }
    }
}
