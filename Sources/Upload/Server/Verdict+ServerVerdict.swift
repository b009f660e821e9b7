// Maps an ingest server's answers to verdicts (waypost-protocol(7), ANSWERS).
import Host
package import HTTP

extension Verdict {
    /// Evaluates an answer as waypost-protocol(7) specifies.
    ///
    /// `records` is the number of records sent, nil if none were. `isKnown` means that the server
    /// has just accepted something, so an HTML page that refuses the token is not from it.
    package init(_ answer: Answer, records: Int? = nil, ofKnownServer isKnown: Bool = false) {
        let after = answer.retryAfter > 0 ? Duration.seconds(min(answer.retryAfter, 3600)) : nil
        switch answer.status {
        case 200...299:
            self = Self.success(answer, records)
        case 401 where isKnown && answer.isPage, 403 where isKnown && answer.isPage:
            self = .stranger(answer)
        case 401, 403:
            self = .tokenRefused(Self.tokenRefusal(answer))
        case 404, 405, 300...399:
            self = .endpointWrong(
                Failure(
                    "no ingest server answers at the endpoint (\(answer.message)); check upload.endpoint",
                    code: .server
                )
            )
        case 413:
            self = .tooLarge(message: answer.message)
        case 409:
            self = .inProgress(
                Failure("the server is still working on this batch", code: .server),
                after: after
            )
        case 429 where answer.reply.isOfStream:
            self = .streamHeld(
                Failure("the server holds this stream: \(answer.message)", code: .server),
                for: after
            )
        case 511:
            self = .retry(
                Failure(
                    "a captive portal requires a login on this network (\(answer.message))",
                    code: .server
                ),
                after: nil
            )
        case 408, 425, 429, 500...599:
            self = .retry(Failure("server error: \(answer.message)", code: .server), after: after)
        case 400, 422:
            self = .refused(message: answer.message)
        default:
            // waypost-protocol(7) does not define these codes, so they must not cause data loss.
            self = .retry(
                Failure("unexpected answer: \(answer.message)", code: .server),
                after: after
            )
        }
    }

    private static func tokenRefusal(_ answer: Answer) -> Failure {
        let doubt = answer.isPage ? ", or this is the page of a captive portal" : ""
        return Failure(
            "the server refused the device token\(doubt) (\(answer.message)); put a valid one into the token file",
            code: .tokenRefused
        )
    }

    /// Accepts a 2xx only with a body that an ingest server would send: captive portals also answer
    /// 200.
    private static func success(_ answer: Answer, _ records: Int?) -> Self {
        switch answer.reply.form {
        case .other:
            let type = answer.contentType.plainWords(atMost: 80)
            return later("the answer is not from an ingest server (\(type), a captive portal?)")
        case _ where answer.cutAt != nil:
            let length = answer.cutAt ?? 0
            return later(
                "the answer is longer than \(length) bytes (HTTP \(answer.status)), so it does not "
                    + "count; check the server at upload.endpoint"
            )
        case .unfinished:
            return later("the answer ends in the middle of its JSON (HTTP \(answer.status))")
        case .blank, .json:
            let isExplained = records.map { answer.reply.accounts(for: $0) } ?? true
            if answer.reply.rejected > 0, isExplained { return .refused(message: answer.message) }
            guard answer.reply.saysNo || !isExplained else { return .accepted }
            return later(
                "the server says that it does not have all records (\(answer.message)); they are "
                    + "sent again; check the server at upload.endpoint"
            )
        }
    }

    private static func later(_ message: String) -> Self {
        .retry(Failure(message, code: .server), after: nil)
    }

    /// Returns a retry: the answer does not come from a server that evaluated the data.
    static func stranger(_ answer: Answer) -> Self {
        let words = "the answer is not from an ingest server (\(answer.message)): a captive portal?"
        return .retry(Failure(words, code: .server), after: nil)
    }
}

extension Answer {
    /// The answer is an HTML page that would count against records, as captive portals and proxies
    /// send.
    var isPageAgainstRecords: Bool { isPage && [400, 413, 422].contains(status) }

    /// Returns whether the sender of `page` also sent this answer for another URL: portals answer
    /// every URL alike.
    func isStrangers(like page: Answer) -> Bool {
        (300...399).contains(status)
            || isPage && (status == page.status || (200...299).contains(status))
    }
}
