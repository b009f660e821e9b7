// Where uploads go, and as whom.
package import HTTP
package import Records

/// What is special to a bucket as the place that uploads go to.
package struct BucketSettings: Sendable {
    /// As requests are signed for.
    package var region: String

    package init(region: String) {
        self.region = region
    }
}

/// What a server or a bucket as a destination needs to know.
package struct DestinationSettings: Sendable {
    package var transport: TransportSettings
    /// Set where the endpoint is a bucket rather than an ingest server.
    package var bucket: BucketSettings?
    package var deviceID: String
    /// Names on the wire of the streams that are built in.
    package var streamNames: [Stream: String]
    /// Names of all other streams, from the queue: records of a stream that is declared no more may still wait.
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
