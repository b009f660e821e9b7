// A TCP connection, with or without TLS, that libcurl makes and the caller speaks over.
import CCurl
package import Host

/// A connection to a server over which bytes are read and written; used by one thread.
///
/// libcurl resolves the name, connects and verifies the certificate (CURLOPT_CONNECT_ONLY). It
/// never uses a proxy. Reads do not block; the caller polls `descriptor` for input first.
package struct ByteStream: ~Copyable {
    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private let server: String
    private let names: SettingNames

    private init(
        multi: UnsafeMutableRawPointer,
        easy: UnsafeMutableRawPointer,
        server: String,
        names: SettingNames
    ) {
        (self.multi, self.easy, self.server, self.names) = (multi, easy, server, names)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        // The handle must stay in the multi handle while the connection is used.
        curl_multi_remove_handle(multi, easy)
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
        errorText.deallocate()
    }

    /// Connects, with TLS if the endpoint is encrypted.
    ///
    /// `caFile` adds authorities to those of the system. `names` are for the advice in messages.
    /// Throws a `Failure` with the cause and the next step, also if `stop` was raised.
    package static func connect(
        to endpoint: Endpoint,
        caFile: String?,
        names: SettingNames,
        timeout: Duration = .seconds(15),
        until stop: StopSignal
    ) throws(Failure) -> ByteStream {
        guard Transport.isInitialised, let multi = curl_multi_init() else {
            throw Failure("libcurl could not be started")
        }
        guard let easy = curl_easy_init() else {
            curl_multi_cleanup(multi)
            throw Failure("libcurl could not be started")
        }
        let stream = ByteStream(multi: multi, easy: easy, server: endpoint.server, names: names)
        stream.prepare(endpoint, caFile, timeout)
        try stream.handshake(until: stop)
        return stream
    }

    private func prepare(_ endpoint: Endpoint, _ caFile: String?, _ timeout: Duration) {
        let place = HostPort(host: endpoint.host, port: endpoint.port)
        let scheme = endpoint.isEncrypted ? "https" : "http"
        waypost_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        waypost_curl_set_string(easy, CURLOPT_URL, "\(scheme)://\(place)/")
        waypost_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, scheme)
        waypost_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
        waypost_curl_set_string(easy, CURLOPT_NOPROXY, "*")
        waypost_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // A silent name server must not delay a stop.
        waypost_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        waypost_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(timeout.milliseconds)))
        // Some brokers refuse a client that offers HTTP.
        waypost_curl_set_long(easy, CURLOPT_SSL_ENABLE_ALPN, 0)
        waypost_curl_set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        waypost_curl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let caFile { waypost_curl_set_string(easy, CURLOPT_CAINFO, caFile) }
    }

    private func handshake(until stop: StopSignal) throws(Failure) {
        curl_multi_add_handle(multi, easy)
        var running: Int32 = 1
        while true {
            stop.life.during("curl_multi_perform") { _ = curl_multi_perform(multi, &running) }
            if running == 0 { break }
            if stop.isRaised { throw Failure("\(server): stopped while connecting") }
            var waiting = curl_waitfd()
            waiting.fd = stop.descriptor
            waiting.events = Int16(CURL_WAIT_POLLIN)
            stop.life.during("curl_multi_poll", for: .seconds(1)) {
                _ = curl_multi_poll(multi, &waiting, 1, 1000, nil)
            }
        }
        var left: Int32 = 0
        let message = curl_multi_info_read(multi, &left)
        let code = message?.pointee.data.result ?? CURLE_COULDNT_CONNECT
        guard code == CURLE_OK else { throw failure(code) }
        guard descriptor >= 0 else { throw failure(CURLE_COULDNT_CONNECT) }
    }

    /// The socket to poll.
    package var descriptor: Int32 { waypost_curl_socket(easy) }

    /// Returns at most `limit` bytes that have arrived; nil if there are none yet.
    ///
    /// Throws a `Failure` if the connection has ended.
    package mutating func read(atMost limit: Int) throws(Failure) -> [UInt8]? {
        var code = CURLE_OK
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            code = curl_easy_recv(easy, buffer.baseAddress, limit, &count)
            if code != CURLE_OK { count = 0 }
        }
        if code == CURLE_AGAIN { return nil }
        guard code == CURLE_OK else { throw failure(code) }
        guard !bytes.isEmpty else {
            throw Failure("\(server): the server closed the connection", code: .network)
        }
        return bytes
    }

    /// Writes all bytes within `limit`; once `stop` is raised, only what the socket takes at once.
    ///
    /// Throws a `Failure` otherwise; the connection cannot be used afterwards.
    package mutating func write(
        _ bytes: [UInt8],
        within limit: Duration,
        until stop: StopSignal
    ) throws(Failure) {
        let deadline = SystemClock().now() + limit
        var (start, failed): (Int, Failure?) = (0, nil)
        // OpenSSL wants a write that would block to be repeated from the same address.
        bytes.withUnsafeBytes { bytes in
            while start < bytes.count, failed == nil {
                var count = 0
                let rest = bytes.baseAddress.map { $0 + start }
                let code = curl_easy_send(easy, rest, bytes.count - start, &count)
                start += count
                if code == CURLE_AGAIN {
                    failed = awaitRoom(until: deadline, stop)
                } else if code != CURLE_OK {
                    failed = failure(code)
                }
            }
        }
        if let failed { throw failed }
    }

    private func awaitRoom(until deadline: BootInstant, _ stop: StopSignal) -> Failure? {
        let left = deadline - SystemClock().now()
        guard left > .zero, !stop.isRaised else {
            return Failure("\(server): the server does not read what it is sent", code: .network)
        }
        var entries = [PollEntry(descriptor, PollEntry.writable), PollEntry(stop.descriptor)]
        _ = stop.wait(for: &entries, timeout: left)
        return nil
    }

    private func failure(_ code: CURLcode) -> Failure {
        let detail = String(cString: errorText)
        let text = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        // The text may quote a certificate from the other side.
        return Failure(
            "\(server): \(text.plainWords(atMost: 300)) (curl \(code.rawValue))"
                + ConnectionAdvice.text(code, detail, names),
            code: .network
        )
    }
}
