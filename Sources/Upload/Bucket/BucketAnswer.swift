// What an object store's answer means: it keeps bytes and judges no records.
internal import Board
package import Requests

extension Verdict {
    /// The verdict on storing one object.
    package init(bucket answer: Answer) {
        let store = StoreWords(answer)
        let after = answer.retryAfter > 0 ? Duration.seconds(min(answer.retryAfter, 3600)) : nil
        switch store.meaning {
        case .stored:
            self = Self.stored(answer)
        case .clock:
            self = .retry(
                Failure(
                    "the store says that the clock of this machine is wrong (\(store.text)); it is "
                        + "tried again, and works once NTP or a person has set the clock",
                    code: .server
                ),
                after: after
            )
        case .size:
            self = .tooLarge(message: store.text)
        case .address:
            self = .endpointWrong(Failure(store.addressAdvice, code: .server))
        case .keys:
            self = .tokenRefused(
                Failure(
                    "the store refused the keys (\(store.text)); check upload.credentials_file, and that "
                        + "its key may put objects into the bucket",
                    code: .tokenRefused
                )
            )
        case .other:
            self = .retry(Failure("store error: \(store.text)", code: .server), after: after)
        }
    }

    /// Every store names what it has stored; a captive portal that says 200 does not.
    private static func stored(_ answer: Answer) -> Self {
        guard answer.etag.isEmpty else { return .accepted }
        return .retry(
            Failure(
                "the answer is not from an object store (\(answer.contentType), a captive portal?)",
                code: .server
            ),
            after: nil
        )
    }
}
