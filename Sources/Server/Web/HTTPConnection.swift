// Wraps a libmicrohttpd connection for the server.
import CMicrohttpd

/// A handle of a connection; valid until the daemon reports that it is closed.
package struct HTTPConnection: @unchecked Sendable {
    // Unchecked: other threads than the daemon's only resume it, which libmicrohttpd allows.
    let handle: OpaquePointer

    package var socket: Int32 { waypost_http_socket(handle) }

    /// Bytes of the request line and header.
    var headerSize: Int { waypost_http_header_size(handle) }

    /// The peer's address; "" without one.
    package var address: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        waypost_http_address(handle, &text)
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    package func head(method: UnsafePointer<CChar>, url: UnsafePointer<CChar>) -> RequestHead {
        var head = RequestHead(
            method: String(cString: method),
            path: String(cString: url),
            address: clientNetwork(self.address)
        )
        for field in HTTPField.allCases {
            guard let value = waypost_http_field(handle, field.rawValue)
            else { continue }
            head.fields[field] = String(cString: value)
        }
        head.isAmbiguous = waypost_http_is_ambiguous(handle) != 0
        withUnsafeMutablePointer(to: &head.query) { waypost_http_query(handle, addToQuery, $0) }
        return head
    }

    /// The last address in the last `X-Forwarded-For` line; the proxy wrote it, earlier ones may be
    /// forged.
    var forwardedFor: String? {
        guard let line = waypost_http_last_field(handle, "X-Forwarded-For") else { return nil }
        let last = String(cString: line).split(separator: ",").last { !$0.allSatisfy { $0 == " " } }
        return last.map { String($0.filter { $0 != " " }.prefix(64)) }
    }

    /// Queues an answer; returns false if the connection cannot take one any more.
    ///
    /// `isEncrypted`: the browser is to use TLS only from now on (RFC 6797).
    package func queue(_ answer: HTTPAnswer, closing: Bool, isEncrypted: Bool) -> Bool {
        var more = closing ? [("Connection", "close")] : []
        if isEncrypted { more.append(("Strict-Transport-Security", "max-age=31536000")) }
        let response = waypost_http_response(answer.body, answer.body.count)
        return queue(response, answer.status, answer.headers + more)
    }

    /// Queues a streamed answer.
    package func queue(_ stream: AnswerStream) -> Bool {
        let context = Unmanaged.passRetained(stream)
        guard let response = waypost_http_stream(readStream, forgetStream, context.toOpaque())
        else {
            context.release()
            return false
        }
        return queue(response, 200, stream.headers)
    }

    private func queue(
        _ response: OpaquePointer?,
        _ status: Int,
        _ headers: [(name: String, value: String)]
    ) -> Bool {
        guard let response else { return false }
        defer { MHD_destroy_response(response) }
        for (name, value) in headers { MHD_add_response_header(response, name, value) }
        return waypost_http_queue(handle, UInt32(status), response) != 0
    }

    /// True if the client has closed the connection; unread data hides that.
    var isClosed: Bool { waypost_http_is_shut(socket) != 0 }

    /// Drops a client that acknowledges nothing for so long.
    func limitSilence(to limit: Duration) {
        waypost_http_limit_silence(socket, UInt32(limit / .milliseconds(1)))
    }

    /// Suspends the connection: no thread and no timeout until it is resumed.
    func suspend() { MHD_suspend_connection(handle) }

    func resume() { MHD_resume_connection(handle) }
}

/// Returns the network that counts as one client: the first 64 bits of an IPv6 address, because one
/// subscriber has all of them, and any other address as it is.
func clientNetwork(_ address: String) -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    guard inet_pton(AF_INET6, address, &bytes) == 1 else { return address }
    let isIPv4 = bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255])
    let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    guard !isIPv4, !isLinkLocal else { return address }
    bytes.replaceSubrange(8..., with: repeatElement(0, count: 8))
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self) + "/64"
}

/// Called with each name and value of a query; `query` points to `RequestHead.query`.
private func addToQuery(
    _ query: UnsafeMutableRawPointer?,
    _ kind: MHD_ValueKind,
    _ name: UnsafePointer<CChar>?,
    _ value: UnsafePointer<CChar>?
) -> MHD_Result {
    if let query = query?.assumingMemoryBound(to: [String: String].self), let name {
        let (name, value) = (String(cString: name), value.map { String(cString: $0) } ?? "")
        if query.pointee[name] == nil { query.pointee[name] = value }
    }
    return waypost_http_result(1)
}

// MARK: Callbacks of libmicrohttpd for streamed answers

private func readStream(
    _ context: UnsafeMutableRawPointer?,
    _ position: UInt64,
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ count: Int
) -> Int {
    // MHD_CONTENT_READER_END_OF_STREAM
    let end = -1
    guard let context else { return end }
    let stream = Unmanaged<AnswerStream>.fromOpaque(context).takeUnretainedValue()
    return stream.fill(UnsafeMutableRawBufferPointer(start: buffer, count: count)) ?? end
}

private func forgetStream(_ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    Unmanaged<AnswerStream>.fromOpaque(context).release()
}
