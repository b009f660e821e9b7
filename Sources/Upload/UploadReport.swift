// The uploader's published state.
package import Host
import Queue
package import Records

/// An error and when it happened.
package struct TimedFailure: Sendable, Equatable {
    package var failure: Failure
    package var at: Stamp
}

/// The upload state of one stream.
package struct StreamUpload: Sendable, Equatable {
    /// Records in the current request.
    package var inFlight = 0
    package var lastAttemptAt: Stamp?
    package var lastSuccessAt: Stamp?
    /// The last failure, until a batch of the stream succeeds.
    package var lastError: TimedFailure?
    /// Records the server accepted since the start.
    package var uploaded = 0

    package init() {}
}

/// The uploader's state.
package struct UploadReport: Sendable, Equatable {
    package enum Phase: String, Codable, Sendable {
        case idle
        case uploading
        /// Waiting after a failure.
        case waiting
        /// Some records wait for the next day's budget, or for more of today's.
        case waitingForBudget = "waiting for budget"
        /// Nothing is uploaded automatically before they end.
        case quietHours = "quiet hours"
        /// Waiting for the clock's first synchronisation of this boot.
        case waitingForClock = "waiting for clock"
        case tokenRefused = "token refused"
        case endpointWrong = "endpoint wrong"
        /// The uploader could not be started or hangs; as the two below, only in `status`.
        case error
        case noEndpoint = "no endpoint"
        case unknown

        /// A phase that this version does not know is `unknown`.
        package init(from decoder: any Decoder) throws {
            self = Self(rawValue: try String(from: decoder)) ?? .unknown
        }
    }

    package var phase = Phase.idle
    package var streams: [Stream: StreamUpload] = [:]
    /// Streams that the budget has no room for now.
    package var held: Set<Stream> = []
    package var lastAttemptAt: Stamp?
    package var lastSuccessAt: Stamp?
    /// When the next automatic attempt happens; none happens earlier.
    package var notBefore: BootInstant?
    /// When an attempt happens at the latest, if no tick comes earlier.
    package var atTheLatest: BootInstant?
    /// Bytes of bodies handed to the network since the start, retries included.
    package var bytesSent: Int64 = 0
    /// The tag of the jobs that the server offers; nil while it offers none.
    package var jobs: String?

    package init() {}

    /// Returns why a stream's records are not sent now, as a message; nil if nothing holds them up.
    package func obstacle(of stream: Stream) -> String? {
        if phase == .quietHours { return phase.rawValue }
        return held.contains(stream) ? Self.budgetObstacle : nil
    }

    package static let budgetObstacle = "daily budget"

    /// A stream's last upload failed.
    package var isFailing: Bool { streams.values.contains { $0.lastError != nil } }

    /// Returns the state for the next uploader: timestamps, counts and errors, without what is in
    /// progress.
    func resumed() -> Self {
        var next = self
        (next.phase, next.notBefore, next.atTheLatest, next.held) = (.idle, nil, nil, [])
        for stream in streams.keys { next.streams[stream]?.inFlight = 0 }
        return next
    }
}
