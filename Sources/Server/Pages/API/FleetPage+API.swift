// Access to the read API: a viewer's token, or the session of a browser.
import Foundation
import Host
import ServerBase
package import ServerWeb
import Synchronization

extension FleetPage {
    /// Decides by the header about a request to the read API.
    package func plan(_ route: ReadRoute, _ head: RequestHead) throws -> RequestPlan {
        try head.expect("GET")
        if case .description = route.target { return .answer(OpenAPI.answer) }
        try expectViewers()
        try authorize(head)
        return .body(limit: 0, isKnown: true)
    }

    /// Answers a request to the read API; on a worker's thread.
    package func answer(_ route: ReadRoute, _ head: RequestHead) throws -> HTTPAnswer {
        _ = try viewers.refresh(waits: true)
        try authorize(head)
        let answer = try readers.take(within: .zero) {
            try gate.take {
                try ReadAPI(looks: looks, now: SystemClock().wall().milliseconds)
                    .answer(route, head)
            }
        }
        guard let answer else {
            throw HTTPError(status: 503, reason: "too many requests at once", retryAfter: 1)
        }
        return answer
    }

    /// Throws an HTTPError without a good token or session.
    ///
    /// Wrong tokens count with those of the login.
    private func authorize(_ head: RequestHead) throws {
        let field = trimmed(head.fields[.authorization] ?? "")
        guard field.lowercased().hasPrefix("bearer ") else {
            guard viewer(head) == nil else { return }
            throw Self.refusal("send a viewer's token: Authorization: Bearer TOKEN")
        }
        guard !viewers.isToken(GivenSecret(text: trimmed(field.dropFirst(7)))) else { return }
        if let seconds = attempts.withLock({ $0.refused(head.address, at: .now) }) {
            let reason = "too many wrong viewer's tokens from \(head.address)"
            throw HTTPError(status: 429, reason: reason, retryAfter: seconds)
        }
        throw Self.refusal("this viewer's token is not known")
    }

    private static func refusal(_ reason: String) -> HTTPError {
        HTTPError(
            status: 401,
            reason: "\(reason); waypost-receiver viewers add NAME makes one",
            authenticate: "Bearer"
        )
    }
}
