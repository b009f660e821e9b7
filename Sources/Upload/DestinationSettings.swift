// Settings of upload destinations: address, identity and credentials.
package import HTTP
package import Records

/// Settings that only a bucket needs.
package struct BucketSettings: Sendable {
    /// The region used to sign requests.
    package var region: String

    package init(region: String) {
        self.region = region
    }
}

/// Settings of a destination, a server or a bucket.
package struct DestinationSettings: Sendable {
    package var transport: TransportSettings
    /// Set if the endpoint is a bucket, not an ingest server.
    package var bucket: BucketSettings?
    package var deviceID: String
    /// Wire names of the built-in streams.
    package var streamNames: [Stream: String]
    /// Wire names of all other streams, from the queue: records of a removed stream may still be
    /// pending.
    package var userName: @Sendable (Stream) -> String? = { _ in nil }
    package var compression: Compression
    /// Reads the device token, or a bucket's keys as `ID:SECRET`.
    package var token: @Sendable () throws -> String

    package init(
        transport: TransportSettings,
        bucket: BucketSettings? = nil,
        deviceID: String,
        streamNames: [Stream: String],
        compression: Compression = UploadSettings().compression,
        token: @escaping @Sendable () throws -> String
    ) {
        self.transport = transport
        self.bucket = bucket
        self.deviceID = deviceID
        self.streamNames = streamNames
        self.compression = compression
        self.token = token
    }

    func name(of stream: Stream) -> String {
        streamNames[stream] ?? userName(stream) ?? "\(stream)"
    }
}
