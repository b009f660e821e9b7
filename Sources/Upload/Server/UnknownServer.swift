// Pages of HTML that say no to a batch: whose are they?
import Host
import HTTP

extension Answer {
    /// It would count against records, and is a page, as a captive portal has one, or what stands before a server.
    var isPageAgainstRecords: Bool { isPage && [400, 413, 422].contains(status) }

    /// Whether whoever had a page for a batch has this for another address, too: a portal answers all alike.
    func isStrangers(like page: Answer) -> Bool {
        (300...399).contains(status)
            || isPage && (status == page.status || (200...299).contains(status))
    }
}

extension Verdict {
    /// Nobody who knows the data has judged it.
    static func stranger(_ answer: Answer) -> Self {
        let words = "the answer is not from an ingest server (\(answer.message)): a captive portal?"
        return .retry(Failure(words, code: .server), after: nil)
    }
}
