// What came back from a server.
import Host

/// A finished HTTP exchange.
package struct Answer: Sendable, Equatable {
    package var status: Int
    package var contentType: String
    /// The first bytes of the body: the server's message.
    package var body: [UInt8]
    /// What the whole body says.
    package var reply: Reply
    /// How many bytes of the body were read, where it was longer than the limit; nil where all of it was read.
    package var cutAt: Int?
    /// libcurl sent the request a second time by itself, because the connection was lost.
    package var isOfSecondTry = false
    /// Seconds the server asked to wait, as libcurl read them.
    package var retryAfter: Int
    /// The codings the server would have taken, as in its `Accept-Encoding`; empty without one.
    package var acceptEncoding: String
    /// What an object store calls the bytes it has stored; empty without one.
    package var etag = ""
    /// Where an object store says that the bucket is; empty where it says nothing.
    package var region = ""
    /// Where a redirect leads, as its `Location` says; empty without one.
    package var location = ""

    /// `body`: all of it.
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

    /// It is a page of HTML: something on the way to the server has it in the place of an answer, or the server's own frame.
    package var isPage: Bool { firstByte == UInt8(ascii: "<") }

    /// It is a JSON object, as servers of this protocol say what is wrong; nothing on the way to them does.
    package var isObject: Bool { firstByte == UInt8(ascii: "{") && Reply(body).form == .json }

    /// Behind blanks and the mark of UTF-8.
    private var firstByte: UInt8? {
        body.first { $0 > 32 && ![0xEF, 0xBB, 0xBF].contains($0) }
    }

    /// The server's message for people: one line, at most 200 characters.
    package var message: String {
        let cut = String(decoding: body.prefix(800), as: UTF8.self).plainWords(atMost: 200)
        return cut.isEmpty ? statusText : "\(statusText): \(cut)"
    }

    /// The status, and of a redirect where it leads.
    var statusText: String {
        guard (300...399).contains(status), !location.isEmpty else { return "HTTP \(status)" }
        return "HTTP \(status) to \(location.plainWords(atMost: 200))"
    }
}
