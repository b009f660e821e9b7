// The interface of upload destinations: a server, a bucket, or a simulated one.
package import Host
import HTTP
package import Queue
import Records

/// Receives one batch at a time; used by one thread.
package protocol Destination: AnyObject {
    /// Begins a sync; reads token or keys again, so new ones need no restart.
    ///
    /// Throws a Failure that says what to do about it.
    func begin() throws
    /// Makes the next request open a new connection, because the network has changed.
    func networkChanged()
    /// Returns the last record of a pending range that fits into one batch with at most `limit`
    /// bytes of body.
    ///
    /// That is always at least one record. The body may be made while records are counted; `send`
    /// uses it for a batch of this range from this reader only, and reads the records again for any
    /// other batch.
    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64
    /// The form of the batch for the range that `lastRecord` was last asked about.
    var form: Batch.Form { get }
    /// Sends a batch; returns on a verdict, if no server was reached, or when `stop` is raised.
    ///
    /// Calls `mayCost` before each request with the bytes on the wire that it is expected to take
    /// and the traffic of the requests before it; if that returns false, the batch is held. Throws
    /// the errors of reading its records.
    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery
}

extension Destination {
    package var form: Batch.Form { .rows }
}

/// The outcome of sending a batch, over all its requests.
package struct Delivery: Sendable, Equatable {
    /// The verdict on the last request.
    package var verdict: Verdict
    /// No byte of it was sent: no server can have seen it.
    package var isUnsent = false
    /// Bytes of bodies handed to the network.
    package var bytes = 0
    /// Bytes on the wire.
    package var traffic = Traffic()
    /// Records of an accepted batch that the server says it already had.
    package var duplicates = 0
    /// The batch was sent more than once, so duplicates are expected.
    package var wasRepeated = false
    /// The tag of the server's list of jobs, from the newest answer that has one.
    package var jobs: String?

    package init(_ verdict: Verdict = .stopped) {
        self.verdict = verdict
    }

    /// Makes a request if `mayCost` allows it, and adds its outcome, which `evaluate` names for an
    /// answer; returns the answer.
    mutating func request(
        _ request: HTTPRequest,
        over transport: Transport,
        mayCost: (Int64, Traffic) -> Bool,
        meanwhile: () -> Bool = { false },
        until stop: StopSignal,
        evaluate: (Answer) -> Verdict
    ) -> Answer? {
        guard mayCost(request.cost, traffic) else {
            verdict = .held
            return nil
        }
        let exchange = transport.send(request, meanwhile: meanwhile, until: stop)
        bytes += request.body.length
        traffic = traffic + transport.takeTraffic()
        switch exchange {
        case .stopped: verdict = .stopped
        case .failed(let failure):
            verdict = .unreachable(failure)
            isUnsent = traffic.sent == 0
        case .answered(let answer):
            verdict = evaluate(answer)
            duplicates = answer.reply.duplicates
            jobs = answer.reply.jobs ?? jobs
            if answer.isOfSecondTry { wasRepeated = true }
            return answer
        }
        return nil
    }
}
