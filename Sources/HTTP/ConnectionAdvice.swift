// Advice for people after a failed connection.
package import CCurl
import Host

/// Names the next step after a failed connection.
package enum ConnectionAdvice {
    /// OpenSSL's messages for an answer that is not TLS.
    private static let plain = ["wrong version number", "packet length too long", "http request"]

    /// Returns the likely next step, to append to libcurl's own message; otherwise empty.
    ///
    /// `detail` is that message.
    package static func text(_ code: CURLcode, _ detail: String, _ names: SettingNames) -> String {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            "; check the network, its name server and \(names.endpoint)"
        case CURLE_COULDNT_CONNECT:
            "; check that the server runs, and the host and port in \(names.endpoint)"
        case CURLE_PEER_FAILED_VERIFICATION:
            "; check this device's clock, the server's certificate and \(names.certificates)"
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: "; check \(names.pin)"
        case CURLE_SSL_CACERT_BADFILE: "; check \(names.certificates)"
        case CURLE_SSL_CONNECT_ERROR where plain.contains { detail.contains(text: $0) }:
            "; the server at this port does not use TLS: check \(names.scheme):// and the port in \(names.endpoint)"
        case CURLE_SSL_CONNECT_ERROR:
            "; the server has no certificate for this name yet: look at its proxy's log "
                + "(`journalctl -u caddy`), and check the name in \(names.endpoint)"
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
            "; the answer is not HTTP: check http:// or https:// and the port in \(names.endpoint)"
        case CURLE_BAD_CONTENT_ENCODING:
            "; the next answer is read as it comes; the server should send it without a Content-Encoding"
        default: ""
        }
    }
}
