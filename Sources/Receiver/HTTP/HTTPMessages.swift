// What a request and an answer are to the routes, and what the routes are to the server.
import Foundation

/// A field of a request that a route may ask after.
package enum HTTPField: String, CaseIterable, Sendable {
    case contentEncoding = "Content-Encoding"
    case contentLength = "Content-Length"
    case contentType = "Content-Type"
    case cookie = "Cookie"
    case fetchSite = "Sec-Fetch-Site"
    case forwardedProto = "X-Forwarded-Proto"
    case host = "Host"
    case idempotencyKey = "Idempotency-Key"
    case origin = "Origin"
    case range = "Range"
    case token = "X-Device-Token"
    case transferEncoding = "Transfer-Encoding"
}

/// A request up to its body.
package struct RequestHead: Sendable {
    package var method: String
    /// Without a query.
    package var path: String
    /// The client's address: the other end's, or what the proxy in front of this server says.
    package var address: String
    package var fields: [HTTPField: String] = [:]

    /// Bytes that the body is said to have; nil where nothing is said.
    package var length: Int? { fields[.contentLength].flatMap { Int($0) } }

    package var isChunked: Bool { fields[.transferEncoding] != nil }
}

/// An answer.
package struct HTTPAnswer: Sendable {
    package var status: Int
    package var body: [UInt8]
    package var headers: [(name: String, value: String)] = []

    package init(_ status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    /// A JSON object.
    package init(_ status: Int, _ object: [String: Any]) {
        self.status = status
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: object, options: options)
        body = Array(data ?? Data()) + [10]
        headers = [("Content-Type", "application/json")]
    }

    package init(_ refusal: HTTPRefusal) {
        self.init(refusal.status, ["error": refusal.reason])
        if let encodings = refusal.acceptEncoding { headers.append(("Accept-Encoding", encodings)) }
        if let seconds = refusal.retryAfter { headers.append(("Retry-After", "\(seconds)")) }
        if let method = refusal.allow { headers.append(("Allow", method)) }
    }
}

/// A request that cannot be accepted: its status and why.
package struct HTTPRefusal: Error {
    package var status: Int
    package var reason: String
    /// The encodings that would have been taken, where that is what was wrong.
    package var acceptEncoding: String?
    /// Seconds to wait before another try.
    package var retryAfter: Int?
    /// The method that would have been taken, where that is what was wrong.
    package var allow: String?
}

/// What becomes of a request once its header is there.
///
/// `isKnown`: it has a good token or session, so it gets more time and its body is read to the end
/// for the sake of the answer.
package enum RequestPlan: Sendable {
    /// Its body does not matter.
    case answer(HTTPAnswer, isKnown: Bool = false)
    /// Its body is wanted, at most so many bytes of it.
    case body(limit: Int, isKnown: Bool = false)
    /// Its body does not matter, and the answer has no end of its own.
    case stream(AnswerStream)
}

/// What a receiver is, wherever it keeps its batches.
package protocol ReceiverApplication: HTTPApplication {
    /// Whether any token is taken.
    func isOpen() -> Bool
    /// It serves now.
    func begin() throws
    /// It is to end: what workers have is still answered.
    func windDown()
    /// It serves no more; what it does beside that ends soon.
    func finish()
}

/// The routes behind a server.
package protocol HTTPApplication: Sendable {
    /// Judges a request by its header; called on the one thread that serves all, so it waits for nothing.
    func plan(_ head: RequestHead) -> RequestPlan

    /// Where a body is kept that is larger than what memory is given to it.
    var spoolFolder: String { get }

    /// Answers a request whose body is whole; called on a worker's thread, and may take its time.
    func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer
}
