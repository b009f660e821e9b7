// The error that answers a request.

/// A refused request, with status and reason.
package struct HTTPError: Error {
    package var status: Int
    package var reason: String
    /// The supported encodings, if the encoding was wrong.
    package var acceptEncoding: String?
    /// Seconds to wait before a retry.
    package var retryAfter: Int?
    /// The only stream that it is for.
    package var stream: String?
    /// The allowed method, if the method was wrong.
    package var allow: String?
    /// The expected kind of authentication, if that was missing or wrong.
    package var authenticate: String?

    package init(
        status: Int,
        reason: String,
        acceptEncoding: String? = nil,
        retryAfter: Int? = nil,
        stream: String? = nil,
        allow: String? = nil,
        authenticate: String? = nil
    ) {
        self.status = status
        self.reason = reason
        self.acceptEncoding = acceptEncoding
        self.retryAfter = retryAfter
        self.stream = stream
        self.allow = allow
        self.authenticate = authenticate
    }
}
