// The bucket that a receiver without an archive writes to.
package import HTTP

/// A bucket and the credentials for writing objects.
package struct BucketPlace: Sendable {
    /// The bucket's URL, including the folder.
    package var url: String
    package var region: String
    /// A PEM file of additional certificate authorities to trust.
    package var certificateFile: String?
    package var userAgent: String
    /// Reads `ID:SECRET` for each batch, so that new keys need no restart.
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

    /// The names of the settings as users know them.
    package static let names: SettingNames = {
        var names = SettingNames()
        (names.endpoint, names.bucket, names.region) = ("--bucket-url", "--bucket-url", "--region")
        (names.keys, names.certificates, names.pin) = ("--credentials-file", "--ca-file", "")
        return names
    }()

    var transport: TransportSettings {
        // A gateway waits 30 s for an answer, and should get one before that.
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
