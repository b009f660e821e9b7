// Limits how often one address may guess at device tokens.
import ServerBase
import Synchronization

/// Counts wrong tokens per address, with the limits of `AttemptLimit`.
///
/// An address with too many wrong tokens is refused. Many devices may share an address with an
/// attacker, so a good token still passes if it is too long to guess, or was good from there
/// before.
package final class TokenGuesses: Sendable {
    private struct Use: Hashable {
        var address: String
        var digest: [UInt8]
    }

    private struct State {
        var wrong = AttemptLimit()
        var good: Set<Use> = []
    }

    /// Characters from which on a token cannot be guessed; those made here have 43.
    private static let unguessable = 32
    /// The number of good tokens remembered; above it, all are forgotten.
    private static let maximum = 4096

    private let state = Mutex(State())

    package init() {}

    /// Returns the device that `find` returns for the request's token.
    ///
    /// Throws an HTTPError for a wrong token (nil), and after too many of them.
    package func check(
        _ head: RequestHead,
        _ find: (_ token: GivenSecret) throws -> String?
    ) throws -> String {
        let token = GivenSecret(text: head.fields[.token] ?? "")
        let use = Use(address: head.address, digest: token.digest)
        let now = ContinuousClock.now
        let device = try find(token)
        let isLong = token.text.utf8.count >= Self.unguessable
        let seconds = state.withLock {
            $0.good.contains(use) || device != nil && isLong
                ? nil : $0.wrong.wait(head.address, at: now)
        }
        if let seconds {
            let reason = "too many wrong device tokens from \(head.address)"
            throw HTTPError(status: 429, reason: reason, retryAfter: seconds)
        }
        state.withLock {
            if device == nil {
                if !token.text.isEmpty { $0.wrong.failed(head.address, at: now) }
                $0.good.remove(use)
            } else {
                if $0.good.count >= Self.maximum { $0.good = [] }
                $0.good.insert(use)
            }
        }
        guard let device else {
            throw HTTPError(status: 401, reason: "X-Device-Token is missing or not known")
        }
        return device
    }
}
