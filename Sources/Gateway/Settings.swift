// Converts the configuration to the settings of each part.
import Host
import HTTP
import Queue
import Records
import Upload

extension DestinationSettings {
    /// Makes the settings; returns nil without an endpoint or bucket.
    init?(_ context: ServiceContext, _ configuration: Configuration) {
        let upload = configuration.upload
        guard let endpoint = upload.target else { return nil }
        let environment = context.environment
        self.init(
            transport: upload.transport(endpoint, userAgent: "waypost/\(context.version)"),
            bucket: upload.destination == .s3 ? BucketSettings(region: upload.region) : nil,
            deviceID: context.deviceID,
            streamNames: Dictionary(
                uniqueKeysWithValues: StreamList().streams.map { ($0, configuration.wire(of: $0)) }
            ),
            compression: upload.compression
        ) {
            switch upload.destination {
            case .ingest:
                try Token.read(
                    file: upload.tokenFile,
                    environment: environment,
                    for: endpoint,
                    onlyBound: upload.isFromCard
                )
            case .s3:
                try StoreKeys.read(
                    file: upload.credentialsFile,
                    environment: environment,
                    for: endpoint,
                    onlyBound: upload.isFromCard
                )
            }
        }
        userName = { [queue = context.queue] in queue.streams[$0]?.wire }
    }
}

extension Configuration {
    /// The declared streams, in the queue's type.
    var queueStreams: [DeclaredStream] {
        userStreams.map { DeclaredStream(name: $0.name, wire: $0.wire) }
    }
}

extension QueueSettings {
    /// Makes the settings wherever the queue is opened: smaller limits would delete records.
    init(
        _ configuration: Configuration,
        bootID: String,
        clock: any HostClock = SystemClock(),
        version: String
    ) {
        self.init(
            path: configuration.databasePath,
            bootID: bootID,
            commitInterval: configuration.storage.commitInterval,
            clock: clock,
            appVersion: version
        )
        limits = configuration.storage.limits
        userStreams = configuration.queueStreams
    }
}

extension Configuration {
    /// Returns a stream's name on the wire; the queue knows that of a stream no longer declared.
    func wire(of stream: Stream, in streams: StreamList) -> String {
        guard let kind = streams[number: stream.number], kind.isOfUser,
            !userStreams.contains(where: { $0.name == stream.name })
        else { return wire(of: stream) }
        return kind.wire
    }
}
