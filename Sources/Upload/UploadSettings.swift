// The upload settings from the configuration.
package import HTTP

/// `[upload]`: the destination, and how often and how much to upload.
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
    /// In the form of curl's `CURLOPT_PINNEDPUBLICKEY`: `sha256//…`, several separated by `;`.
    package var pinnedPublicKey: String?
    /// The time between the ticks that trigger syncs.
    package var interval = Duration.seconds(300)
    /// A request without progress for this long is aborted.
    package var timeout = TransportSettings.usualTimeout
    /// The limit of a body before compression.
    package var maxBatchBytes = 8 << 20
    package var compression = Compression.gzip
    package var format = Format.auto
    /// The rate limit in bytes per second.
    package var maxRate: Int?
    /// The limit of bytes on the wire per day (UTC).
    package var dailyBudget: Int64?
    /// Sound that nobody marked is sent, too, as long as the budget has room (waypost.toml(5), audio.fill_budget).
    package var fillsBudget = false
    /// Hours in which nothing is uploaded automatically.
    package var quiet: QuietHours?
    /// Refusals of a record that is alone in its batch, one per sync, before it is quarantined.
    package var maxAttempts = 5
    /// Requested after each sync that left nothing: a checked `http` or `https` URL.
    package var heartbeatURL: String?
    /// The longest time after boot that uploads wait for the first clock synchronisation.
    package var clockPatience = Duration.seconds(120)
    /// The interval at which the newest records are sent while a backlog is drained.
    package var liveInterval = Duration.seconds(60)

    /// The settings came from a card or USB stick: a secret that does not name its server is not
    /// sent.
    package var isFromCard = false

    package init() {}

    /// How the records of a batch are written.
    package enum Format: String, Sendable, CaseIterable {
        /// In columns, if the server says that it takes them.
        case auto
        case rows
    }

    /// The kind of destination.
    package enum DestinationKind: String, Sendable, CaseIterable {
        /// A server as waypost-protocol(7) describes it.
        case ingest
        /// A bucket of an S3-compatible object store.
        case s3
    }

    /// Batches are never split: a bucket may have one already, and would store its records twice.
    var batchesStayWhole: Bool { destination == .s3 }

    /// The URL of the destination; nil if none is configured.
    package var target: String? {
        switch destination {
        case .ingest: endpoint
        case .s3: bucketURL
        }
    }

    /// The server whose secrets the destination needs: scheme, host and port.
    package var server: String? { target.flatMap { try? Endpoint.parse($0).get().server } }

    /// Returns the transport settings for a URL.
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

    /// The transport of the heartbeat after a sync that left nothing; nil if not configured.
    var heartbeat: TransportSettings? {
        heartbeatURL.map {
            TransportSettings(
                endpoint: $0,
                // Uploads wait for it, so keep it short.
                timeout: min(timeout, .seconds(10)),
                userAgent: "waypost",
                certificateFile: caFile
            )
        }
    }
}
