// A server's answer.
import Host

/// The answer of a finished HTTP exchange.
package struct Answer: Sendable, Equatable {
    package var status: Int
    package var contentType: String
    /// The first bytes of the body: the server's message.
    package var body: [UInt8]
    /// The parsed body.
    package var reply: Reply
    /// Bytes of the body that were read if it exceeded the limit; nil if all of it was read.
    package var cutAt: Int?
    /// libcurl repeated the request by itself, because the connection was lost.
    package var isOfSecondTry = false
    /// Seconds that the server asked to wait, as libcurl parsed them.
    package var retryAfter: Int
    /// The codings the server accepts, from its `Accept-Encoding`; empty without one.
    package var acceptEncoding: String
    /// The object store's `ETag` of the stored bytes; empty without one.
    package var etag = ""
    /// The bucket's region, as the object store reports it; empty without one.
    package var region = ""
    /// The `Location` of a redirect; empty without one.
    package var location = ""

    /// Takes the complete body.
    package init(
        status: Int,
        contentType: String = "",
        body: [UInt8] = [],
        retryAfter: Int = 0,
        acceptEncoding: String = ""
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        reply = Reply(body)
        self.retryAfter = retryAfter
        self.acceptEncoding = acceptEncoding
    }

    /// The body is an HTML page, from something on the way to the server or from the server's own
    /// frame.
    package var isPage: Bool { firstByte == UInt8(ascii: "<") }

    /// The body is a JSON object: the form in which servers of this protocol, and nothing on the
    /// way to them, report errors.
    package var isObject: Bool { firstByte == UInt8(ascii: "{") && Reply(body).form == .json }

    /// The first byte after white space and a UTF-8 byte order mark.
    private var firstByte: UInt8? {
        body.first { $0 > 32 && ![0xEF, 0xBB, 0xBF].contains($0) }
    }

    /// The server's message for people: one line, at most 200 characters.
    package var message: String {
        let cut = String(decoding: body.prefix(800), as: UTF8.self).plainWords(atMost: 200)
        return cut.isEmpty ? statusText : "\(statusText): \(cut)"
    }

    /// The status, and the target of a redirect.
    var statusText: String {
        guard (300...399).contains(status), !location.isEmpty else { return "HTTP \(status)" }
        return "HTTP \(status) to \(location.plainWords(atMost: 200))"
    }
}
