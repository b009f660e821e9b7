// Settings of upload destinations: address, identity and credentials; opens and verifies one.
package import Host
package import HTTP
package import Queue
package import Records

/// Settings of a destination, a server or a bucket.
package struct DestinationSettings: Sendable {
    package var transport: TransportSettings
    /// The region of a bucket, used to sign requests; nil for an ingest server.
    package var region: String?
    package var deviceID: String
    /// Wire names of the built-in streams.
    package var streamNames: [Stream: String]
    /// Wire names of all other streams, from the queue: records of a removed stream may still be
    /// pending.
    package var userName: @Sendable (Stream) -> String? = { _ in nil }
    package var compression: Compression
    /// Batches may be in columns, if the server takes them.
    package var allowsColumns = true
    /// Reads the device token, or a bucket's keys as `ID:SECRET`.
    package var token: @Sendable () throws -> String

    package init(
        transport: TransportSettings,
        region: String? = nil,
        deviceID: String,
        streamNames: [Stream: String],
        compression: Compression = UploadSettings().compression,
        token: @escaping @Sendable () throws -> String
    ) {
        self.transport = transport
        self.region = region
        self.deviceID = deviceID
        self.streamNames = streamNames
        self.compression = compression
        self.token = token
    }

    func name(of stream: Stream) -> String {
        streamNames[stream] ?? userName(stream) ?? "\(stream)"
    }
}

extension DestinationSettings {
    /// Opens the destination for the batches of a queue.
    ///
    /// Throws if libcurl cannot be used, or the queue's disk error.
    package func open(_ queue: Queue) throws -> any Destination {
        guard region == nil else { return try BucketDestination(self, queue) }
        // A batch in columns is for the server that has said it takes them: another one may accept any JSON.
        let server = allowsColumns ? transport.endpoint : ""
        if queue.remembered(Self.columnsMemo) != server {
            try queue.perform { try $0.makeRowsOfColumns() }
            queue.remember(Self.columnsMemo, server)
        }
        return try ServerDestination(self)
    }

    private static let columnsMemo = "columns for"

    /// Asks the endpoint once whether it accepts uploads of this device.
    ///
    /// Throws a Failure with the endpoint's or the network's message.
    package func verify(
        until stop: StopSignal,
        onTraffic: (Traffic) -> Void = { _ in }
    ) throws -> Enrolment.Outcome {
        guard region != nil else {
            return try Enrolment.verify(
                transport,
                token: token(),
                until: stop,
                onTraffic: onTraffic
            )
        }
        let destination = try BucketDestination(self, nil)
        try destination.begin()
        try destination.verify(until: stop, onTraffic: onTraffic)
        return .accepted()
    }
}
