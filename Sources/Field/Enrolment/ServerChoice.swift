// The server that a person names to `waypost enroll`.
import Configuration
import Host
import HTTP
import JSON
import Upload

/// The server to enrol at, and what the connection to it needs.
package struct ServerChoice: Sendable {
    package var endpoint: String
    /// A file with the certificate of a private authority; the device gets a copy.
    package var caFile: String?
    /// Permits `http://` to other machines.
    package var allowsPlaintext: Bool

    package init(_ endpoint: String, caFile: String? = nil, allowsPlaintext: Bool = false) {
        (self.endpoint, self.caFile, self.allowsPlaintext) = (endpoint, caFile, allowsPlaintext)
    }

    /// The same with the path of a Waypost server; nil if the endpoint has a path.
    var withPath: ServerChoice? {
        guard case .success = Endpoint.parse(endpoint),
            let authority = endpoint.firstRange(ofPart: "://").map({ endpoint[$0.upperBound...] })
        else { return nil }
        let path = authority.drop { $0 != "/" && $0 != "?" }
        guard path.isEmpty || path == "/" else { return nil }
        var choice = self
        choice.endpoint = String(endpoint.dropLast(path.utf8.count)) + "/api/ingest"
        return choice
    }

    /// Adds the keys to a configuration's text and values; `certificate` is the copy's path.
    func apply(
        to text: inout ConfigurationEdit,
        _ upload: inout UploadSettings,
        certificate: String
    ) {
        text.set("endpoint", to: endpoint, in: "upload")
        upload.endpoint = endpoint
        if caFile != nil {
            text.set("ca_file", to: certificate, in: "upload")
            upload.caFile = certificate
        }
        if allowsPlaintext {
            text.set("allow_plaintext", literal: "true", in: "upload")
            upload.allowsPlaintext = true
        }
    }

    /// Returns the certificate of a private authority; nil if none was named.
    func certificate() throws(Failure) -> [UInt8]? {
        guard let caFile else { return nil }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try SmallFile.read(caFile, limit: 1 << 20, wait: true).bytes
        } catch {
            throw Failure("--ca-file \(caFile): \(error.reason)")
        }
        guard String(decoding: bytes, as: UTF8.self).contains(text: "-----BEGIN CERTIFICATE-----")
        else { throw Failure("--ca-file \(caFile) is not a certificate in PEM format") }
        return bytes
    }

    /// Returns false if something else than a Waypost server answers.
    static func isWaypost(_ settings: TransportSettings) throws -> Bool {
        let path = "/api/ingest"
        var request = HTTPRequest(getting: settings.endpoint.dropLast(path.count) + "/healthz")
        request.isOnlyTry = true
        guard
            case .answered(let answer) = try Transport(settings).send(request, until: StopSignal())
        else { return true }
        return (try? JSONInput.decode(Health.self, from: answer.body))?.ok == true
    }

    private struct Health: Decodable {
        var ok: Bool
        var version: String
    }
}
