// From the configuration to what each part needs to know.
internal import Audio
internal import Beacons
internal import Host
internal import Location
internal import Queue
internal import Streams
internal import Upload

extension BeaconSettings {
    init(_ configuration: Configuration.Beacons) {
        switch configuration.source {
        case .adapter(let number): self.init(origin: .adapter(number))
        case .controller(let address):
            self.init(origin: .controller(host: address.host, port: address.port))
        case .capture(let path):
            self.init(origin: .capture(path: path, speed: configuration.replaySpeed))
        }
        scan.isActive = configuration.scan == .active
        scan.interval = configuration.scanInterval
        scan.window = configuration.scanWindow
        allow = configuration.allow
        deny = configuration.deny
        maxRate = configuration.maxRate
        keepsUnknown = configuration.unknown
        bindkeys = configuration.bindkeys
    }
}

extension LocationSettings {
    init(_ configuration: Configuration.Location) {
        self.init(
            host: configuration.gpsd.host,
            port: configuration.gpsd.port,
            interval: configuration.interval,
            minDistance: configuration.minDistance
        )
    }
}

extension AudioSettings {
    init(_ configuration: Configuration.Audio) {
        self.init(devices: configuration.devices)
        channel = configuration.channel
        rate = configuration.rate
        chunk = configuration.chunk
        overlap = configuration.overlap
        codec = configuration.codec
        bitrate = configuration.bitrate
        minimumLevel = configuration.minLevel
    }
}

extension StorageLimits {
    init(_ configuration: Configuration.Storage) {
        self.init(
            maxSize: Int64(configuration.maxSize),
            warnFree: Int64(configuration.warnFree),
            criticalFree: Int64(configuration.criticalFree)
        )
    }
}

extension UploadSettings {
    init(_ configuration: Configuration.Upload) {
        self.init(
            maxBatchBytes: configuration.maxBatchBytes,
            maxAttempts: configuration.maxAttempts,
            interval: configuration.interval
        )
        heartbeat = configuration.heartbeatURL.map {
            TransportSettings(
                endpoint: $0,
                // Uploads wait for it.
                timeout: min(configuration.timeout, .seconds(10)),
                userAgent: "waypost",
                certificateFile: configuration.caFile
            )
        }
    }
}

extension DestinationSettings {
    /// nil without an endpoint or bucket.
    init?(_ context: ServiceContext, _ configuration: Configuration) {
        let upload = configuration.upload
        guard let endpoint = upload.target else { return nil }
        let environment = context.environment
        self.init(
            transport: TransportSettings(
                endpoint: endpoint,
                timeout: upload.timeout,
                userAgent: "waypost/\(context.version)",
                certificateFile: upload.caFile,
                pinnedPublicKey: upload.pinnedPublicKey,
                maxRate: upload.maxRate
            ),
            bucket: upload.destination == .s3 ? BucketSettings(region: upload.region) : nil,
            deviceID: context.deviceID,
            streamNames: Dictionary(
                uniqueKeysWithValues: StreamList().streams.map { ($0, configuration.wire(of: $0)) }
            ),
            compression: Compression(rawValue: upload.compression.rawValue) ?? .gzip
        ) {
            switch upload.destination {
            case .ingest: try Token.read(file: upload.tokenFile, environment: environment)
            case .s3: try StoreKeys.read(file: upload.credentialsFile, environment: environment)
            }
        }
        userName = { [queue = context.queue] in queue.streams[$0]?.wire }
    }
}

extension Configuration {
    /// The declared streams as the queue wants them.
    var queueStreams: [DeclaredStream] {
        userStreams.map { DeclaredStream(name: $0.name, wire: $0.wire) }
    }
}

extension QueueSettings {
    /// Whoever opens the queue keeps to the same limits: with others, records would give way for nothing.
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
        limits = StorageLimits(configuration.storage)
        userStreams = configuration.queueStreams
    }
}

extension Configuration {
    /// The name of a stream on the wire; of one that is declared no more, as the queue has it.
    func wire(of stream: Stream, in streams: StreamList) -> String {
        guard let kind = streams[number: stream.number], kind.isOfUser,
            !userStreams.contains(where: { $0.name == stream.name })
        else { return wire(of: stream) }
        return kind.wire
    }
}
