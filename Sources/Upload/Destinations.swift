// The destinations there are.
package import Host
internal import Queue
internal import Streams

extension DestinationSettings {
    /// Throws if libcurl cannot be used.
    package func open() throws -> any Destination {
        if let bucket { return try BucketDestination(self, bucket) }
        return try ServerDestination(self)
    }

    /// Asks the endpoint once whether it takes uploads of this device.
    ///
    /// Throws a Failure with what it or the network said.
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
