// Certificates of servers on this machine.
import Foundation
import Support
import Testing

/// Makes a certificate that is its own authority, for 127.0.0.1 and three days: the files `cert` and
/// `key` in a folder.
func makeCertificate(in folder: String) throws {
    let made = try Process.run(
        "/usr/bin/openssl",
        [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key",
            "-out", folder + "/cert",
        ]
    )
    try #require(made.status == 0, "\(made.error)")
}
