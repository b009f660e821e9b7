// A connection of libmicrohttpd's, as the server side uses it.
internal import CMicrohttpd

/// Valid until the daemon says that it is closed.
struct HTTPConnection: @unchecked Sendable {
    // Unchecked because another thread than the daemon's only resumes it, which libmicrohttpd allows.
    let handle: OpaquePointer

    var socket: Int32 { waypost_http_socket(handle) }

    /// Bytes of request line and header.
    var headerSize: Int { waypost_http_header_size(handle) }

    func head(method: UnsafePointer<CChar>, url: UnsafePointer<CChar>) -> RequestHead {
        var address = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        waypost_http_address(handle, &address)
        var head = RequestHead(
            method: String(cString: method),
            path: String(cString: url),
            address: String(decoding: address.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        )
        for field in HTTPField.allCases {
            guard let value = waypost_http_field(handle, field.rawValue)
            else { continue }
            head.fields[field] = String(cString: value)
        }
        return head
    }

    /// Hands an answer over; false where the connection cannot take one any more.
    func queue(_ answer: HTTPAnswer, closing: Bool) -> Bool {
        guard let response = waypost_http_response(answer.body, answer.body.count) else {
            return false
        }
        defer { MHD_destroy_response(response) }
        for (name, value) in answer.headers { MHD_add_response_header(response, name, value) }
        if closing { MHD_add_response_header(response, "Connection", "close") }
        return waypost_http_queue(handle, UInt32(answer.status), response) != 0
    }

    /// It costs nothing and has no time-out until it is resumed.
    func suspend() { MHD_suspend_connection(handle) }

    func resume() { MHD_resume_connection(handle) }
}
