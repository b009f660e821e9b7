// What the uploader tells of itself.
package import Host
import Queue
package import Records

/// An error with when it happened.
package struct TimedFailure: Sendable, Equatable {
    package var failure: Failure
    package var at: Stamp
}

/// One stream as the uploader sees it.
package struct StreamUpload: Sendable, Equatable {
    /// Records in the request that is under way.
    package var inFlight = 0
    package var lastAttemptAt: Stamp?
    package var lastSuccessAt: Stamp?
    /// The last failure, until a batch of the stream succeeds.
    package var lastError: TimedFailure?
    /// Records the server took since the start.
    package var uploaded = 0

    package init() {}
}

/// The uploader's state.
package struct UploadReport: Sendable, Equatable {
    package enum Phase: String, Sendable {
        case idle
        case uploading
        /// Waiting after a failure.
        case waiting
        /// Some of what is there has to wait for the next day's budget, or for more of this one's.
        case waitingForBudget = "waiting for budget"
        /// Nothing goes by itself before they are over.
        case quietHours = "quiet hours"
        /// Waiting for the clock's first sync of this boot.
        case waitingForClock = "waiting for clock"
        case tokenRefused = "token refused"
        case endpointWrong = "endpoint wrong"
    }

    package var phase = Phase.idle
    package var streams: [Stream: StreamUpload] = [:]
    /// Streams that the budget has no room for now.
    package var held: Set<Stream> = []
    package var lastAttemptAt: Stamp?
    package var lastSuccessAt: Stamp?
    /// No automatic attempt before this, but one then.
    package var notBefore: BootInstant?
    /// An attempt comes by itself then, where no tick of the grid comes before.
    package var atTheLatest: BootInstant?
    /// Bytes of bodies handed to the network since the start, retries included.
    package var bytesSent: Int64 = 0

    package init() {}

    /// Why a stream's records are not sent now, as a person reads it; nil where nothing is in the way.
    package func obstacle(of stream: Stream) -> String? {
        if phase == .quietHours { return phase.rawValue }
        return held.contains(stream) ? Self.budgetObstacle : nil
    }

    package static let budgetObstacle = "daily budget"

    /// Something fails, or did when it was tried last.
    package var isFailing: Bool { streams.values.contains { $0.lastError != nil } }

    /// What the next uploader goes on from: dates, counts and errors, without the state of the one before.
    func resumed() -> Self {
        var next = self
        (next.phase, next.notBefore, next.atTheLatest, next.held) = (.idle, nil, nil, [])
        for stream in streams.keys { next.streams[stream]?.inFlight = 0 }
        return next
    }
}
