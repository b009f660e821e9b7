// The route `POST /api/device/enroll`, which exchanges a code for a token.
package import Foundation
package import ServerBase
import Synchronization

/// Exchanges codes for tokens, and slows down clients that guess.
package final class EnrolRoute: Sendable {
    private let enrolments: Enrolments
    private let log: ServerLog
    private let attempts = Mutex(AttemptLimit())

    package init(_ enrolments: Enrolments, log: ServerLog) {
        (self.enrolments, self.log) = (enrolments, log)
    }

    /// Exchanges the code in `body` for a token; throws an HTTPError.
    ///
    /// `isListed` returns whether a device has a token in the token list. `enrolled` is called with a
    /// device and the number of its code.
    package func answer(
        _ body: Data,
        from address: String,
        isListed: (String) -> Bool,
        enrolled: (String, Int64) -> Void
    ) throws -> HTTPAnswer {
        let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        guard let text = object?["code"] as? String, let device = object?["device_id"] as? String,
            isName(device)
        else {
            throw HTTPError(
                status: 400,
                reason: "code or device_id is missing or not a plain name"
            )
        }
        let wanted = try Self.wanted(object?["token"])
        do {
            let (token, isReplaced, code) = try enrolments.exchange(
                GivenSecret(typed: text),
                for: device,
                wanted,
                isListed: isListed(device),
                at: Date()
            )
            enrolled(device, code)
            if isReplaced {
                log.warn("\(device) has enrolled again: its former token has ended")
            } else {
                log.write("\(device) has enrolled")
            }
            return HTTPAnswer(200, ["token": token.text, "device_id": device])
        } catch let error as EnrolmentError {
            // A good code that is refused for another reason is not a guess.
            guard error == .badCode,
                let seconds = attempts.withLock({ $0.refused(address, at: .now) })
            else { throw HTTPError(status: 403, reason: error.reason) }
            throw HTTPError(status: 429, reason: "too many wrong codes", retryAfter: seconds)
        }
    }

    /// Returns the token that the device generated; nil if the server is to make one.
    private static func wanted(_ member: Any?) throws -> GivenSecret? {
        guard let member else { return nil }
        guard let text = member as? String, let token = GivenSecret(wanted: text) else {
            throw HTTPError(
                status: 400,
                reason: "token is not 32 to 128 letters, digits, - and _"
            )
        }
        return token
    }
}
