// The settings of the queue that follow from a configuration.
package import Host
import HTTP
package import Queue
package import Records
import Upload

extension Configuration {
    /// The declared streams, in the queue's type.
    package var queueStreams: [DeclaredStream] {
        userStreams.map { DeclaredStream(name: $0.name, wire: $0.wire) }
    }
}

extension Configuration {
    /// The limits on the file system of the state directory, as it is now.
    package var storageLimits: StorageLimits {
        storage.limits(total: FileSpace.total(stateDirectory))
    }
}

extension QueueSettings {
    /// Makes the settings wherever the queue is opened: smaller limits would delete records.
    package init(
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
        limits = configuration.storageLimits
        userStreams = configuration.queueStreams
        sound = StateBox(configuration.sound)
    }
}

extension Configuration {
    /// Returns a stream's name on the wire; the queue knows that of a stream no longer declared.
    package func wire(of stream: Stream, in streams: StreamList) -> String {
        guard let kind = streams[number: stream.number], kind.isOfUser,
            !userStreams.contains(where: { $0.name == stream.name })
        else { return wire(of: stream) }
        return kind.wire
    }
}
