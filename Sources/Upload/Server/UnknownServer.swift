// Recognises HTML answers that may come from a captive portal or proxy, not from the server.
import Host
import HTTP

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

extension Verdict {
    /// Returns a retry: the answer does not come from a server that evaluated the data.
    static func stranger(_ answer: Answer) -> Self {
        let words = "the answer is not from an ingest server (\(answer.message)): a captive portal?"
        return .retry(Failure(words, code: .server), after: nil)
    }
}
