// What came back from a server, and what it means (contract, section 3).
package import Board
internal import Host

/// A finished HTTP exchange.
package struct Answer: Sendable, Equatable {
    package var status: Int
    package var contentType: String
    /// The body, or its first megabyte.
    package var body: [UInt8]
    /// The body went on; the rest was not read.
    package var isCut = false
    /// Seconds the server asked to wait, as libcurl read them.
    package var retryAfter: Int
    /// The codings the server would have taken, as in its `Accept-Encoding`; empty without one.
    package var acceptEncoding: String
    /// What an object store calls the bytes it has stored; empty without one.
    package var etag = ""
    /// Where an object store says that the bucket is; empty where it says nothing.
    package var region = ""

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
        self.retryAfter = retryAfter
        self.acceptEncoding = acceptEncoding
    }

    /// The server's words for people: one line, at most 200 characters.
    var words: String {
        let cut = String(decoding: body.prefix(800), as: UTF8.self).plainWords(atMost: 200)
        return cut.isEmpty ? "HTTP \(status)" : "HTTP \(status): \(cut)"
    }
}

/// What the uploader does after an answer.
package enum Verdict: Sendable, Equatable {
    /// The server has the batch.
    case accepted
    /// Try the same batch again later; nobody has judged the data.
    case retry(Failure, after: Duration?)
    /// Uploads stop until the token changes or the server thinks better of it.
    case tokenRefused(Failure)
    /// The address is wrong: hold and say so.
    case endpointWrong(Failure)
    /// The batch is too large for the server.
    case tooLarge(words: String)
    /// The server refuses records of the batch.
    case refused(words: String)

    /// The table of the contract, row by row.
    package init(_ answer: Answer) {
        let after = answer.retryAfter > 0 ? Duration.seconds(min(answer.retryAfter, 3600)) : nil
        switch answer.status {
        case 200...299:
            self = Self.success(answer)
        case 401, 403:
            self = .tokenRefused(
                Failure(
                    "the server refused the device token (\(answer.words)); put a valid one into the token file",
                    code: .tokenRefused
                )
            )
        case 404, 405, 300...399:
            self = .endpointWrong(
                Failure(
                    "no ingest server answers at the endpoint (\(answer.words)); check upload.endpoint",
                    code: .server
                )
            )
        case 413:
            self = .tooLarge(words: answer.words)
        case 409:
            self = .retry(
                Failure("the server is still working on this batch", code: .server),
                after: after
            )
        case 408, 425, 429, 500...599:
            self = .retry(Failure("server error: \(answer.words)", code: .server), after: after)
        case 400, 422:
            self = .refused(words: answer.words)
        default:
            // Codes that the contract does not name judge nothing, so nothing may be lost to them.
            self = .retry(
                Failure("unexpected answer: \(answer.words)", code: .server),
                after: after
            )
        }
    }

    /// 2xx counts only with a body that an ingest server would send: a captive portal says 200 too.
    private static func success(_ answer: Answer) -> Self {
        guard !answer.isCut else {
            return .retry(
                Failure(
                    "the server's answer is longer than \(answer.body.count) bytes (HTTP \(answer.status))",
                    code: .server
                ),
                after: nil
            )
        }
        let isBlank = answer.body.allSatisfy { [9, 10, 13, 32].contains($0) }
        guard !isBlank else { return .accepted }
        do {
            let reply = try JSONInput.decode(Reply.self, from: answer.body)
            return reply.rejected > 0 ? .refused(words: answer.words) : .accepted
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            // JSON, though not an object: nothing in it refuses anything.
            return .accepted
        } catch {
            return .retry(
                Failure(
                    "the answer is not from an ingest server (\(answer.contentType.plainWords(atMost: 80)), a captive portal?)",
                    code: .server
                ),
                after: nil
            )
        }
    }
}

/// The part of a 200 answer that matters.
private struct Reply: Decodable {
    /// Above 0 when some records were.
    var rejected: Int

    private enum Key: CodingKey {
        case rejected
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        // A list of what was rejected counts as its length; anything else says nothing.
        if let count = try? fields.decode(Double.self, forKey: .rejected) {
            rejected = count > 0 ? 1 : 0
        } else {
            var list = try? fields.nestedUnkeyedContainer(forKey: .rejected)
            rejected = list?.count ?? 0
            list = nil
        }
    }
}
