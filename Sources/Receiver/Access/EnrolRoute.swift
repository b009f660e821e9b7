// The route `POST /api/device/enroll`, which exchanges a code for a token.
import Foundation

/// Exchanges codes for tokens, and slows down clients that guess.
final class EnrolRoute: @unchecked Sendable {
    // Unchecked because `attempts` is only used under `lock`.
    private let enrolments: Enrolments
    private let lock = NSLock()
    private var attempts = AttemptLimit()
    private let clock = ContinuousClock()

    init(_ enrolments: Enrolments) {
        self.enrolments = enrolments
    }

    /// The result of a successful enrolment.
    struct Enrolled {
        var token: String
        var device: String
        /// True if an older token of the device has ended.
        var hasReplaced: Bool
    }

    /// Exchanges the code in `body`; throws an HTTPRefusal.
    ///
    /// An unknown, a used and an expired code get the same answer, so that it says nothing about
    /// codes. `isListed` returns whether a device has a token in the token list.
    func exchange(
        _ body: Data,
        from address: String,
        isListed: (String) -> Bool
    ) throws -> Enrolled {
        if let seconds = lock.withLock({ attempts.wait(address, at: clock.now) }) {
            throw HTTPRefusal(status: 429, reason: "too many wrong codes", retryAfter: seconds)
        }
        let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        guard let text = object?["code"] as? String, let device = object?["device_id"] as? String,
            isName(device)
        else {
            throw HTTPRefusal(
                status: 400,
                reason: "code or device_id is missing or not a plain name"
            )
        }
        let wanted = try Self.wanted(object?["token"])
        let code = GivenSecret(typed: text)
        // Counted before the check, so that parallel attempts count too.
        lock.withLock { attempts.failed(address, at: clock.now) }
        guard let code else { throw Self.refusal(.badCode, device) }
        let exchange = try enrolments.exchange(
            code,
            for: device,
            wanted,
            isListed: isListed(device),
            at: Date()
        )
        guard case .token(let token, let replaced) = exchange else {
            throw Self.refusal(exchange, device)
        }
        lock.withLock { attempts.succeeded(address) }
        return Enrolled(token: token.text, device: device, hasReplaced: replaced)
    }

    private static func refusal(_ exchange: CodeExchange, _ device: String) -> HTTPRefusal {
        let reason =
            switch exchange {
            case .codeOfAnotherDevice: "this code was made for another device_id than \(device)"
            case .alreadyEnrolled:
                "\(device) is already enrolled; use a code of: waypost-receiver codes add --device "
                    + "\(device) --replace"
            case .badCode, .token: "this code is not known, was used, or is too old"
            }
        return HTTPRefusal(status: 403, reason: reason)
    }

    /// Returns the token that the device generated; nil if the server is to make one.
    private static func wanted(_ member: Any?) throws -> GivenSecret? {
        guard let member else { return nil }
        guard let text = member as? String, let token = GivenSecret(wanted: text) else {
            throw HTTPRefusal(
                status: 400,
                reason: "token is not 32 to 128 letters, digits, - and _"
            )
        }
        return token
    }
}
