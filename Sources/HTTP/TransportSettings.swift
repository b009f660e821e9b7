// The settings of a transport.

/// The server, timeout, TLS and rate settings for requests.
package struct TransportSettings: Sendable {
    package static let usualTimeout = Duration.seconds(30)

    package var endpoint: String
    /// The server's name in messages, if the endpoint holds a secret.
    package var alias: String?
    /// A request without progress for this long fails.
    package var timeout: Duration
    package var userAgent: String
    package var certificateFile: String?
    /// The pin in curl's form, `sha256//…`.
    package var pinnedPublicKey: String?
    /// Bytes per second; nil: no limit.
    package var maxRate: Int?
    package var names = SettingNames()
    /// Connects to 127.0.0.1 in place of the endpoint's address, and checks the certificate as usual.
    package var connectsToLoopback = false

    package init(
        endpoint: String,
        timeout: Duration = usualTimeout,
        userAgent: String,
        certificateFile: String? = nil,
        pinnedPublicKey: String? = nil,
        maxRate: Int? = nil
    ) {
        self.endpoint = endpoint
        self.timeout = timeout
        self.userAgent = userAgent
        self.certificateFile = certificateFile
        self.pinnedPublicKey = pinnedPublicKey
        self.maxRate = maxRate
    }
}

extension TransportSettings {
    /// The timeout without progress, longer with a rate limit: our own pauses do not count.
    var patience: Duration { timeout + .seconds(maxRate.map { (128 << 10) / max(1, $0) } ?? 0) }

    /// The server's name in messages.
    var server: String { alias ?? endpoint }

    /// The endpoint is an address of this machine: an unencrypted one, or one with a secret.
    package var staysOnThisMachine: Bool {
        guard case .success(let place) = Endpoint.parse(endpoint) else { return false }
        return place.isLoopback && (!place.isEncrypted || alias != nil)
    }
}

/// The names of settings, for error messages that ask people to check them.
package struct SettingNames: Sendable {
    package var endpoint: String
    package var bucket: String
    package var region: String
    package var keys: String
    package var certificates: String
    package var pin: String
    /// The scheme of an encrypted URL of the server.
    package var scheme: String

    /// The defaults are the gateway's names.
    package init(
        endpoint: String = "upload.endpoint",
        bucket: String = "upload.bucket_url",
        region: String = "upload.region",
        keys: String = "upload.credentials_file",
        certificates: String = "upload.ca_file",
        pin: String = "upload.pinned_public_key",
        scheme: String = "https"
    ) {
        self.endpoint = endpoint
        self.bucket = bucket
        self.region = region
        self.keys = keys
        self.certificates = certificates
        self.pin = pin
        self.scheme = scheme
    }
}
