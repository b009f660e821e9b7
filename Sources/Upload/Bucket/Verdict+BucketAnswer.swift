// Maps an object store's answers to verdicts: a store keeps bytes and does not evaluate records.
import Host
package import HTTP

extension Verdict {
    /// Returns the verdict on storing one object.
    package init(bucket answer: Answer) {
        let store = S3ErrorMessages(answer)
        let after = answer.retryAfter > 0 ? Duration.seconds(min(answer.retryAfter, 3600)) : nil
        let failure = Failure(
            store.advice(),
            code: store.meaning == .keys ? .tokenRefused : .server
        )
        switch store.meaning {
        case .stored: self = .accepted
        case .stranger: self = .retry(failure, after: nil)
        case .clock, .full, .other: self = .retry(failure, after: after)
        case .size: self = .tooLarge(message: store.text)
        case .address: self = .endpointWrong(failure)
        case .keys: self = .tokenRefused(failure)
        }
    }
}
