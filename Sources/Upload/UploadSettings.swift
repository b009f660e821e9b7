// What the configuration says of uploads.
package import HTTP

/// `[upload]`: where data goes, how often and how much at a time.
package struct UploadSettings: Sendable, Equatable {
    /// Nothing is collected before the server has accepted this device.
    package var isRequired = true
    package var destination = DestinationKind.ingest
    /// A checked `http` or `https` URL.
    package var endpoint: String?
    package var allowsPlaintext = false
    package var tokenFile: String?
    /// A checked URL of a bucket, with or without a `/` at its end.
    package var bucketURL: String?
    package var region = "us-east-1"
    package var credentialsFile: String?
    package var caFile: String?
    /// As curl's `CURLOPT_PINNEDPUBLICKEY` takes it: `sha256//…`, several split by `;`.
    package var pinnedPublicKey: String?
    /// Of the grid whose ticks call for syncs.
    package var interval = Duration.seconds(300)
    /// No progress for this long ends a request.
    package var timeout = TransportSettings.usualTimeout
    /// Of a body before compression.
    package var maxBatchBytes = 8 << 20
    package var compression = Compression.gzip
    /// Bytes a second.
    package var maxRate: Int?
    /// Bytes on the wire a day (UTC).
    package var dailyBudget: Int64?
    /// Nothing is uploaded in these.
    package var quiet: QuietHours?
    /// Verdicts against a record that stands alone in its batch, each in a sync of its own, before it is
    /// quarantined.
    package var maxAttempts = 5
    /// Fetched after each sync that left nothing: a checked `http` or `https` URL.
    package var heartbeatURL: String?
    /// How long after boot uploads wait for the clock's first sync.
    package var clockPatience = Duration.seconds(120)
    /// While a backlog is sent, the newest records go in between this often.
    package var liveInterval = Duration.seconds(60)

    /// A card or a stick brought all of this: a secret that does not say which server it is for is not sent.
    package var isFromCard = false

    package init() {}

    /// What takes the uploads.
    package enum DestinationKind: String, Sendable, CaseIterable {
        /// A server as waypost-protocol(7) describes it.
        case ingest
        /// A bucket of an S3-compatible object store.
        case s3
    }

    /// A batch is never sent in parts: a bucket may have it already, and would not know its records in another object.
    var batchesStayWhole: Bool { destination == .s3 }

    /// Where uploads go; nil while that is not configured.
    package var target: String? {
        switch destination {
        case .ingest: endpoint
        case .s3: bucketURL
        }
    }

    /// Whose secrets are needed for that: scheme, host and port.
    package var server: String? { target.flatMap { try? Endpoint.parse($0).get().server } }

    /// How that, or another URL, is reached.
    package func transport(_ url: String, userAgent: String) -> TransportSettings {
        TransportSettings(
            endpoint: url,
            timeout: timeout,
            userAgent: userAgent,
            certificateFile: caFile,
            pinnedPublicKey: pinnedPublicKey,
            maxRate: maxRate
        )
    }

    /// Where to call after a sync that left nothing; nil: nowhere.
    var heartbeat: TransportSettings? {
        heartbeatURL.map {
            TransportSettings(
                endpoint: $0,
                // Uploads wait for it.
                timeout: min(timeout, .seconds(10)),
                userAgent: "waypost",
                certificateFile: caFile
            )
        }
    }
}
