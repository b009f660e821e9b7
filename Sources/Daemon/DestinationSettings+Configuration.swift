// The destination that a configuration names.
import Host
import HTTP
import Queue
import Records
import Setup
import Upload

extension DestinationSettings {
    /// Makes the settings; returns nil without an endpoint or bucket.
    init?(_ context: ServiceContext, _ configuration: Configuration) {
        let upload = configuration.upload
        guard let endpoint = upload.target else { return nil }
        let environment = context.environment
        self.init(
            transport: upload.transport(endpoint, userAgent: "waypost/\(context.version)"),
            region: upload.destination == .s3 ? upload.region : nil,
            deviceID: context.deviceID,
            streamNames: Dictionary(
                uniqueKeysWithValues: StreamList().streams.map { ($0, configuration.wire(of: $0)) }
            ),
            compression: upload.compression
        ) { try upload.secret(environment) }
        allowsColumns = upload.format == .auto
        userName = { @Sendable [queue = context.queue] stream in queue.streams[stream]?.wire }
    }
}
