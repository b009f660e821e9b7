// The answers of waypost-protocol(7), ANSWERS, drawn one per request.
internal import HTTP

/// An answer, and its effect on the records of its request.
struct TableAnswer {
    enum Meaning {
        /// The server has them.
        case stored
        /// They got no verdict: the same batch is sent again.
        case unjudged
        case refused
        case tooLarge
    }

    var status: Int
    var meaning: Meaning
    var contentType = "application/json"
    var body = ""
    var retryAfter = 0

    var answer: Answer {
        Answer(
            status: status,
            contentType: contentType,
            body: Array(body.utf8),
            retryAfter: retryAfter
        )
    }

    /// Returns the rows for a request with that many records.
    static func all(records: Int) -> [Self] {
        stored(records) + denied(records) + evaluated(records)
            + [408, 425, 429, 500, 502, 503, 504, 511, 401, 403, 404, 405, 301, 302, 308, 409, 418]
            .map { Self(status: $0, meaning: .unjudged, retryAfter: $0 == 429 ? 7200 : 0) }
            + [
                Self(
                    status: 429,
                    meaning: .unjudged,
                    body: #"{"error":"too much","stream":"s"}"#,
                    retryAfter: 7200
                )
            ]
    }

    private static func stored(_ records: Int) -> [Self] {
        [
            "", " \n", "{}", #"{"accepted":\#(records)}"#,
            #"{"accepted":\#(records),"rejected":0}"#, "[]",
        ]
        .map { Self(status: 200, meaning: .stored, body: $0) } + [
            Self(status: 204, meaning: .stored, contentType: ""),
            Self(status: 201, meaning: .stored, body: #"{"accepted":\#(records),"duplicates":0}"#),
        ]
    }

    /// Returns 2xx answers of a server that does not have the records.
    private static func denied(_ records: Int) -> [Self] {
        let bodies = [
            #"{"success":false}"#, #"{"success":false,"error":"db down"}"#,
            #"{"error":"disk full"}"#,
            #"{"accepted":0,"rejected":0}"#, #"{"accepted":\#(records - 1),"duplicates":0}"#,
            #"{"rejected":true}"#, #"{"accepted":0,"rejected":"1"}"#, "false", "null", #"{"accep"#,
        ]
        return bodies.map { Self(status: 200, meaning: .unjudged, body: $0) } + [
            Self(
                status: 200,
                meaning: .unjudged,
                contentType: "text/html",
                body: "<html>Welcome to our hotel</html>"
            )
        ]
    }

    private static func evaluated(_ records: Int) -> [Self] {
        [
            Self(status: 400, meaning: .refused, body: #"{"error":"bad"}"#),
            Self(status: 422, meaning: .refused, body: #"{"error":"bad"}"#),
            Self(
                status: 200,
                meaning: .refused,
                body: #"{"accepted":0,"rejected":\#(records)}"#
            ),
            Self(status: 413, meaning: .tooLarge),
        ]
    }
}
