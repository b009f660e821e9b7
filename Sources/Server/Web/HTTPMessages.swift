// The types of one HTTP exchange: request header, plan, response, error.
import Foundation
package import ServerBase

/// A request field that routes may read.
package enum HTTPField: String, CaseIterable, Sendable {
    case accept = "Accept"
    case authorization = "Authorization"
    case contentEncoding = "Content-Encoding"
    case contentLength = "Content-Length"
    case contentType = "Content-Type"
    case cookie = "Cookie"
    case fetchSite = "Sec-Fetch-Site"
    case forwardedProto = "X-Forwarded-Proto"
    case host = "Host"
    case idempotencyKey = "Idempotency-Key"
    case ifNoneMatch = "If-None-Match"
    case origin = "Origin"
    case range = "Range"
    case token = "X-Device-Token"
    case transferEncoding = "Transfer-Encoding"
}

/// A request without its body.
package struct RequestHead: Sendable {
    package let method: String
    /// Without the query.
    package let path: String
    package let route: Route
    /// The client's network (`clientNetwork`): the peer's, or the one that a trusted proxy reports.
    package var address: String
    package var fields: [HTTPField: String] = [:]
    /// The first value of each name in the query, decoded.
    package var query: [String: String] = [:]

    /// The declared length of the body in bytes; nil if there is none.
    package var length: Int? { fields[.contentLength].flatMap { Int($0) } }

    package var isChunked: Bool { fields[.transferEncoding] != nil }

    /// The client speaks TLS to the proxy.
    package var isEncrypted: Bool { fields[.forwardedProto]?.lowercased() == "https" }

    /// The server's address as the client wrote it, `https://host`; nil if that is not a host's.
    package var site: String? {
        let host = fields[.host] ?? ""
        let marks = Array(".:[]".utf8)
        guard (1...255).contains(host.utf8.count),
            host.utf8.allSatisfy({ isPlain($0) || marks.contains($0) })
        else { return nil }
        // A browser says it in a form, where the proxy does not.
        let isSecure =
            isEncrypted || fields[.origin]?.lowercased() == "https://\(host.lowercased())"
        return "\(isSecure ? "https" : "http")://\(host)"
    }

    /// The header has a field name with a blank in it, or two lengths: another reader might take a
    /// part of the body for the next request (RFC 9112, 5.1 and 6.3).
    package var isAmbiguous = false

    package init(method: String, path: String, address: String) {
        (self.method, self.path, self.address) = (method, path, address)
        route = Route(path: path)
    }

    /// Throws an HTTPError for any other method; GET includes HEAD.
    package func expect(_ wanted: String) throws {
        guard method != wanted, !(wanted == "GET" && method == "HEAD") else { return }
        throw HTTPError(status: 405, reason: "use \(wanted)", allow: wanted)
    }
}

/// An answer.
package struct HTTPAnswer: Sendable {
    package var status: Int
    package var body: [UInt8]
    package var headers: [(name: String, value: String)] = []

    /// No answer: the connection is closed.
    package static var none: HTTPAnswer { HTTPAnswer(0, body: []) }

    package init(_ status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    /// Makes an answer with a JSON object.
    package init(_ status: Int, _ object: [String: Any]) {
        self.status = status
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: object, options: options)
        body = Array(data ?? Data()) + [10]
        headers = [("Content-Type", "application/json")]
    }

    package init(_ refusal: HTTPError) {
        let stream = refusal.stream.map { ["stream": $0] } ?? [:]
        self.init(refusal.status, stream.merging(["error": refusal.reason]) { $1 })
        if let encodings = refusal.acceptEncoding { headers.append(("Accept-Encoding", encodings)) }
        if let seconds = refusal.retryAfter { headers.append(("Retry-After", "\(seconds)")) }
        if let method = refusal.allow { headers.append(("Allow", method)) }
        if let scheme = refusal.authenticate { headers.append(("WWW-Authenticate", scheme)) }
    }
}

/// The next step for a request after its header.
///
/// `isKnown`: the request is authenticated. The server then allows more time, and reads the body to
/// its end before it answers, so that the client receives the response.
package enum RequestPlan: Sendable {
    /// Answer now and ignore the body.
    case answer(HTTPAnswer, isKnown: Bool = false)
    /// Read the body, at most `limit` bytes; a worker's thread then calls `answer`, or that of the
    /// application.
    case body(limit: Int, isKnown: Bool = false, answer: (@Sendable (Spool) -> HTTPAnswer)? = nil)
    /// Ignore the body and send a streamed answer.
    case stream(AnswerStream)
}
