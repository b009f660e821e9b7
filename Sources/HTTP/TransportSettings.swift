// Where requests go, and how.

/// Where requests go and how.
package struct TransportSettings: Sendable {
    package static let usualTimeout = Duration.seconds(30)

    package var endpoint: String
    /// No progress for this long ends a request.
    package var timeout: Duration
    package var userAgent: String
    package var certificateFile: String?
    /// As curl's `sha256//…`.
    package var pinnedPublicKey: String?
    /// Bytes a second; nil for no limit.
    package var maxRate: Int?
    package var names = SettingNames()

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
    /// How long a request may stand still: with a cap on the rate, pauses of our own are no standstill.
    var patience: Duration { timeout + .seconds(maxRate.map { (128 << 10) / max(1, $0) } ?? 0) }

    /// An address in the clear of this machine itself.
    package var staysOnThisMachine: Bool {
        guard case .success(let place) = Endpoint.parse(endpoint) else { return false }
        return !place.isEncrypted && place.isLoopback
    }
}

/// What people know settings by, for what a failure tells them to look at.
package struct SettingNames: Sendable {
    package var endpoint: String
    package var bucket: String
    package var region: String
    package var keys: String
    package var certificates: String
    package var pin: String

    /// Those of the gateway.
    package init(
        endpoint: String = "upload.endpoint",
        bucket: String = "upload.bucket_url",
        region: String = "upload.region",
        keys: String = "upload.credentials_file",
        certificates: String = "upload.ca_file",
        pin: String = "upload.pinned_public_key"
    ) {
        self.endpoint = endpoint
        self.bucket = bucket
        self.region = region
        self.keys = keys
        self.certificates = certificates
        self.pin = pin
    }
}
