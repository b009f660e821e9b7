// Reads a file of certificate authorities, for `enroll --ca-file` and `config check`.
import Host

/// A PEM file of certificates (RFC 7468, section 5).
enum CertificateFile {
    /// The largest size in bytes; Debian's bundle of all authorities has 220 kB.
    private static let limit = 1 << 20

    /// Returns the bytes of the file; throws a Failure that names it, the problem and the remedy.
    ///
    /// `waits`: also for the writer of a pipe.
    static func read(_ path: String, waits: Bool = false) throws(Failure) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = try SmallFile.read(path, limit: limit, wait: waits).bytes
        } catch {
            throw Failure("\(path): \(error.reason); give the server's authority as a PEM file")
        }
        guard bytes.count <= limit,
            String(decoding: bytes, as: UTF8.self).contains(text: "-----BEGIN CERTIFICATE-----")
        else {
            throw Failure(
                "\(path): is not a PEM file with certificates; convert it with"
                    + " `openssl x509 -inform der -in FILE -out FILE.pem`"
            )
        }
        return bytes
    }
}
