// What became of a batch that was sent.
package import Host

/// What the uploader does after an answer.
package enum Verdict: Sendable, Equatable {
    /// The server has the batch.
    case accepted
    /// The network failed: nobody was asked.
    case unreachable(Failure)
    /// Try the same batch again later; nobody has judged the data.
    case retry(Failure, after: Duration?)
    /// The server still works on this batch, and may store it: the same one under the same key again later.
    case inProgress(Failure, after: Duration?)
    /// The token is refused: uploads stop until it changes, but for one try an interval.
    case tokenRefused(Failure)
    /// The address is wrong: hold and say so.
    case endpointWrong(Failure)
    /// The batch is too large for the server.
    case tooLarge(message: String)
    /// The server refuses records of the batch.
    case refused(message: String)
}
