// The outcome of sending a batch.
package import Host

/// The uploader's interpretation of an answer.
package enum Verdict: Sendable, Equatable {
    /// The server has the batch.
    case accepted
    /// The network failed: no server was reached.
    case unreachable(Failure)
    /// Retry the same batch later; no server has evaluated the data.
    case retry(Failure, after: Duration?)
    /// The server is still processing this batch and may store it: retry later under the same key.
    case inProgress(Failure, after: Duration?)
    /// The server refuses the token: uploads stop until it changes, except for one try per
    /// interval.
    case tokenRefused(Failure)
    /// The endpoint's URL is wrong: hold and report it.
    case endpointWrong(Failure)
    /// The batch is too large for the server.
    case tooLarge(message: String)
    /// The server refuses records of the batch.
    case refused(message: String)
}
