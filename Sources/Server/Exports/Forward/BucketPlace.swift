// The bucket that a receiver without an archive writes to.
package import HTTP

/// A bucket and the credentials for writing objects.
package struct BucketPlace: Sendable {
    let transport: TransportSettings
    package let region: String
    /// Reads `ID:SECRET` for each batch, so that new keys need no restart.
    package let keys: @Sendable () throws -> String

    /// `url`: the bucket's, including the folder; `certificateFile`: a PEM file of additional
    /// certificate authorities to trust.
    package init(
        url: String,
        region: String,
        certificateFile: String? = nil,
        userAgent: String,
        keys: @escaping @Sendable () throws -> String
    ) {
        // A gateway waits 30 s for an answer, and should get one before that.
        var transport = TransportSettings(
            endpoint: url,
            timeout: .seconds(10),
            userAgent: userAgent,
            certificateFile: certificateFile
        )
        transport.names = Self.names
        (self.transport, self.region, self.keys) = (transport, region, keys)
    }

    /// The names of the settings as users know them.
    package static let names = SettingNames(
        endpoint: "--bucket-url",
        bucket: "--bucket-url",
        region: "--region",
        keys: "--credentials-file",
        certificates: "--ca-file",
        pin: ""
    )
}
