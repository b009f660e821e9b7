// Puts objects into a bucket, and translates the store's answers for a gateway.
import HTTP
import Host
import ServerBase
import Synchronization

/// Puts the objects of one batch until a deadline.
struct BucketPut {
    /// Seconds after which a gateway retries, unless the store says otherwise.
    static let pause = 30

    let place: BucketPlace
    let keys: String
    let transport: Transport
    let deadline: BootInstant
    let stop: StopSignal

    /// Puts an object; returns once the store has confirmed it, throws an HTTPError otherwise.
    func callAsFunction(_ object: BucketObject) throws {
        let left = deadline - SystemClock().now()
        guard left > .zero else {
            throw Self.unavailable("the bucket is slow: the batch is not stored in time", after: 1)
        }
        var request = HTTPRequest(
            putting: object,
            into: place.transport.endpoint,
            region: place.region,
            keys: keys
        )
        request.limit = left
        switch transport.send(request, until: stop) {
        case .stopped: throw Self.unavailable("the server is being stopped", after: 1)
        case .failed(let failure): throw Self.unavailable("the bucket: \(failure.message)")
        case .answered(let answer): try Self.evaluate(answer)
        }
    }

    /// Only a size is the gateway's fault: wrong keys, address or clock make it retry.
    private static func evaluate(_ answer: Answer) throws {
        let words = S3ErrorMessages(answer)
        switch words.meaning {
        case .stored: return
        case .size: throw HTTPError(status: 413, reason: "the bucket: \(words.text)")
        case .clock, .address, .keys, .full, .stranger, .other:
            let seconds = answer.retryAfter > 0 ? min(answer.retryAfter, 3600) : pause
            throw unavailable("the bucket: " + words.advice(BucketPlace.names), after: seconds)
        }
    }

    private static func unavailable(_ reason: String, after seconds: Int = pause) -> HTTPError {
        HTTPError(status: 503, reason: reason, retryAfter: seconds)
    }
}

/// Logs once that the bucket refuses batches, and once that it accepts them again.
final class BucketFault: Sendable {
    private let log: ServerLog
    private let reported = Mutex<String?>(nil)

    init(_ log: ServerLog) { self.log = log }

    func began(_ refusal: HTTPError) {
        reported.withLock { reported in
            guard refusal.status == 503, refusal.reason != reported else { return }
            reported = refusal.reason
            log.warn("not stored: \(refusal.reason)")
        }
    }

    func ended() {
        reported.withLock { reported in
            guard reported != nil else { return }
            reported = nil
            log.warn("the bucket accepts batches again")
        }
    }
}
