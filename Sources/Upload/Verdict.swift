// The outcome of sending a batch.
package import Host

/// The outcome of a batch's last request, as the destination interprets it.
package enum Verdict: Sendable, Equatable {
    /// The stop signal was raised before an answer came.
    case stopped
    /// The budget had no room to send the batch, or all of it.
    case held
    /// The server has the batch.
    case accepted
    /// The network failed: no server was reached.
    case unreachable(Failure)
    /// Retry the same batch later; no server has evaluated the data.
    case retry(Failure, after: Duration?)
    /// The server takes nothing of the batch's stream for now, and has not evaluated the data.
    case streamHeld(Failure, for: Duration?)
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

extension Verdict {
    /// Throws what keeps a device from being enrolled; `asked` names the other side.
    func requireAccepted(by asked: String) throws(Failure) {
        switch self {
        case .accepted: return
        case .stopped, .held: throw Failure("enrolment was interrupted")
        case .unreachable(let failure), .retry(let failure, _), .inProgress(let failure, _),
            .tokenRefused(let failure), .endpointWrong(let failure), .streamHeld(let failure, _):
            throw failure
        case .tooLarge(let message), .refused(let message):
            throw Failure("\(asked) refused the enrolment: \(message)", code: .server)
        }
    }
}
