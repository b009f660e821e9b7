// Opens and verifies the configured destination.
package import Host
package import Queue
import Records

extension DestinationSettings {
    /// Opens the destination for the batches of a queue.
    ///
    /// Throws if libcurl cannot be used, or the queue's disk error.
    package func open(_ queue: Queue) throws -> any Destination {
        guard let bucket else { return try ServerDestination(self) }
        return try BucketDestination(self, bucket, queue)
    }

    /// Asks the endpoint once whether it accepts uploads of this device.
    ///
    /// Throws a Failure with the endpoint's or the network's message.
    package func verify(
        until stop: StopSignal,
        onTraffic: (Traffic) -> Void = { _ in }
    ) throws -> Enrolment.Outcome {
        guard let bucket else {
            return try Enrolment.verify(
                transport,
                token: token(),
                until: stop,
                onTraffic: onTraffic
            )
        }
        let destination = try BucketDestination(self, bucket)
        try destination.begin()
        try destination.verify(until: stop, onTraffic: onTraffic)
        return .accepted
    }
}
