// The interface between the HTTP server and the program behind it.
package import ServerBase

/// A program behind the HTTP server: answers its requests.
package protocol HTTPApplication: Sendable {
    /// Decides by the header; called on the one serving thread, so it must not block.
    func plan(_ head: RequestHead) -> RequestPlan

    /// The folder for bodies too large to keep in memory.
    var spoolFolder: String { get }

    /// Answers a request with its complete body, unless its plan says who does; called on a
    /// worker's thread, which may block.
    func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer
}

extension HTTPApplication {
    package func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
        HTTPAnswer(HTTPError(status: 404, reason: "no such path"))
    }
}

/// An ingest server, with a folder or a bucket as its storage.
package protocol ReceiverApplication: HTTPApplication {
    /// Returns whether the server accepts requests without a token.
    func isOpen() -> Bool
    /// Called when serving has started.
    func begin() throws
    /// Called before shutdown; running requests are still answered.
    func windDown()
    /// Called after the server has stopped; asks the background threads to end.
    func finish()
}
