// Where a receiver that keeps nothing puts its batches.
package import HTTP

/// A bucket, and as whom objects are put there.
package struct BucketPlace: Sendable {
    /// The bucket's URL with the folder in it.
    package var url: String
    package var region: String
    /// Authorities to trust beside those of the system, in PEM.
    package var certificateFile: String?
    package var userAgent: String
    /// Reads `ID:SECRET`: for each batch, so that new keys need no restart.
    package var keys: @Sendable () throws -> String

    package init(
        url: String,
        region: String,
        certificateFile: String? = nil,
        userAgent: String,
        keys: @escaping @Sendable () throws -> String
    ) {
        self.url = url
        self.region = region
        self.certificateFile = certificateFile
        self.userAgent = userAgent
        self.keys = keys
    }

    /// What people know its settings by.
    package static let names = SettingNames(
        endpoint: "--bucket-url",
        bucket: "--bucket-url",
        region: "--region",
        keys: "--credentials-file",
        certificates: "--ca-file",
        pin: ""
    )

    var transport: TransportSettings {
        // A gateway waits 30 s for an answer: it is to have one before that.
        var settings = TransportSettings(
            endpoint: url,
            timeout: .seconds(10),
            userAgent: userAgent,
            certificateFile: certificateFile
        )
        settings.names = Self.names
        return settings
    }
}
