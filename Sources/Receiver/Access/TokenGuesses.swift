// How often somebody may guess at the tokens of devices.
import Synchronization

/// Wrong tokens by address, as `AttemptLimit` counts them.
///
/// An address with too many of them is refused, or guesses could go on. Many devices can share an address with
/// one who guesses: a good token that nobody can guess is let through, and a short one that was good there before.
final class TokenGuesses: Sendable {
    private struct Use: Hashable {
        var address: String
        var digest: [UInt8]
    }

    private struct State {
        var wrong = AttemptLimit()
        var good: Set<Use> = []
    }

    /// Characters of a token from which on it cannot be guessed; the receiver's own have 43.
    private static let unguessable = 32
    /// Good tokens that are remembered; then they are forgotten.
    private static let most = 4096

    private let state = Mutex(State())

    /// The device that the token of a request is bound to, as `find` says; nil for a wrong one.
    ///
    /// Throws an HTTPRefusal where too many were wrong.
    func check(
        _ head: RequestHead,
        _ token: GivenSecret,
        _ find: () throws -> String?
    ) throws -> String? {
        let use = Use(address: head.address, digest: token.digest)
        let now = ContinuousClock.now
        let device = try find()
        let isLong = token.text.utf8.count >= Self.unguessable
        let seconds = state.withLock {
            $0.good.contains(use) || device != nil && isLong
                ? nil : $0.wrong.wait(head.address, at: now)
        }
        if let seconds {
            let reason = "too many wrong device tokens from \(head.address)"
            throw HTTPRefusal(status: 429, reason: reason, retryAfter: seconds)
        }
        state.withLock {
            if device == nil {
                if !token.text.isEmpty { $0.wrong.failed(head.address, at: now) }
                $0.good.remove(use)
            } else {
                if $0.good.count >= Self.most { $0.good = [] }
                $0.good.insert(use)
            }
        }
        return device
    }
}
