// HTTP requests through libcurl, over one kept-alive handle.
import CCurl
package import Host

/// The outcome of a request.
package enum Exchange: Sendable, Equatable {
    case answered(Answer)
    /// The network failed; no server evaluated the data.
    case failed(Failure)
    /// The stop signal was raised during the request.
    case stopped
}

/// Owns libcurl's multi handle and the one easy handle in it; used by one thread.
package final class Transport {
    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private let settings: TransportSettings
    /// The address to connect to in place of the endpoint's (CURLOPT_CONNECT_TO).
    private let route: UnsafeMutablePointer<curl_slist>?
    private let clock = SystemClock()
    private var way = AddressFamilyFallback()
    private var rate: RateLimit
    /// The next request opens a new connection and resolves the name again.
    private var wantsFreshConnection = false
    /// Answers are decoded; not after one with a coding that libcurl does not know, such as
    /// `utf-8`.
    private var decodesAnswers = true
    /// Bytes on the wire that nobody has taken yet.
    private var traffic = Traffic()

    /// Initialises libcurl once per process, before other threads use it (curl_global_init(3)).
    package static let isInitialised = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    package init(_ settings: TransportSettings) throws {
        guard Self.isInitialised, let multi = curl_multi_init(), let easy = curl_easy_init() else {
            throw Failure("libcurl could not be started")
        }
        self.multi = multi
        self.easy = easy
        self.settings = settings
        route = settings.connectsToLoopback ? curl_slist_append(nil, "::127.0.0.1:") : nil
        rate = RateLimit(bytesPerSecond: settings.maxRate)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
        errorText.deallocate()
        curl_slist_free_all(route)
    }

    /// Makes the next request open a new connection, after a new DNS query.
    package func networkChanged() { wantsFreshConnection = true }

    /// Returns the bytes on the wire since the last call.
    package func takeTraffic() -> Traffic {
        defer { traffic = Traffic() }
        return traffic
    }

    /// Sends a request; returns when it is answered, has failed, or `stop` is raised.
    ///
    /// Waits first for the bytes of earlier requests, with a rate limit. `meanwhile` is called,
    /// until it returns false, while part of the body is in flight and the thread would wait for
    /// the network or the server.
    package func send(
        _ request: HTTPRequest,
        meanwhile: () -> Bool = { false },
        until stop: StopSignal
    ) -> Exchange {
        if stop.sleep(for: rate.delay(at: clock.now())) { return .stopped }
        let (start, before) = (clock.now(), traffic.sent)
        defer {
            wantsFreshConnection = false
            rate.sent(traffic.sent - before, from: start)
        }
        if wantsFreshConnection { way.forget() }
        let first = attempt(request, meanwhile, stop)
        // A second attempt can take long, so it is left to the next retry, which is due anyway.
        guard first.turns == true, request.isOnlyTry || !way.avoidsIPv6 else {
            return first.outcome
        }
        request.body.rewind()
        let second = attempt(request, meanwhile, stop)
        // If the other family is unreachable, only the first failure explains the cause.
        return second.turns == nil ? second.outcome : first.outcome
    }

    /// Sends a request once; `turns`: the other address family should be tried, nil without an
    /// error of the network.
    private func attempt(
        _ request: HTTPRequest,
        _ meanwhile: () -> Bool,
        _ stop: StopSignal
    ) -> (outcome: Exchange, turns: Bool?) {
        var list: UnsafeMutablePointer<curl_slist>?
        for header in request.headerLines { list = curl_slist_append(list, header) }
        defer { curl_slist_free_all(list) }
        let exchange = ExchangeContext(body: request.body, maxAnswer: request.maxAnswer)
        let context = Unmanaged.passUnretained(exchange).toOpaque()
        prepare(context, length: request.body.length, headers: list)
        apply(request)
        curl_multi_add_handle(multi, easy)
        defer { curl_multi_remove_handle(multi, easy) }
        let result = withExtendedLifetime(exchange) {
            perform(exchange, meanwhile: meanwhile, until: stop)
        }
        stop.life.rests()
        traffic = traffic + bytes(exchange)
        guard let result else { return (.stopped, nil) }
        if result == CURLE_BAD_CONTENT_ENCODING { decodesAnswers = false }
        if let problem = exchange.bodyError {
            return (.failed(Failure("the batch could not be read: \(problem)")), nil)
        }
        // libcurl reports an answer that ends inside its header as a success: `200` and no body.
        let isWhole = result == CURLE_OK && exchange.hasWholeHeader
        let answer = answer(exchange)
        // The status counts even if the body was too long to read.
        let isAnswered = request.isStatusEnough && answer.status > 0
        if isWhole || exchange.isCut || isAnswered { return (.answered(answer), nil) }
        return (.failed(failure(result, exchange)), way.turns(result, address: peer))
    }

    private func apply(_ request: HTTPRequest) {
        // libcurl decodes an answer only if the request asked for a coding.
        if decodesAnswers { waypost_curl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "identity") }
        if request.isGet { waypost_curl_set_long(easy, CURLOPT_HTTPGET, 1) }
        if wantsFreshConnection {
            waypost_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1)
            waypost_curl_set_long(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0)
        }
        if way.avoidsIPv6 { waypost_curl_set_long(easy, CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4)) }
        if let limit = request.limit {
            waypost_curl_set_long(easy, CURLOPT_TIMEOUT_MS, max(1, Int(limit.milliseconds)))
        }
        waypost_curl_set_string(easy, CURLOPT_URL, request.url ?? settings.endpoint)
        request.signing?.apply(to: easy)
    }

    /// The address that the last request was sent to; empty without a connection.
    private var peer: String {
        var address: UnsafeMutablePointer<CChar>?
        waypost_curl_get_string(easy, CURLINFO_PRIMARY_IP, &address)
        return address.map { String(cString: $0) } ?? ""
    }

    private func prepare(
        _ context: UnsafeMutableRawPointer,
        length: Int,
        headers: UnsafeMutablePointer<curl_slist>?
    ) {
        // Reset clears the options and keeps the connection.
        curl_easy_reset(easy)
        errorText[0] = 0
        let connectLimit = max(1, Int(settings.timeout.milliseconds))
        waypost_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        waypost_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        waypost_curl_set_string(easy, CURLOPT_USERAGENT, settings.userAgent)
        waypost_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        waypost_curl_set_long(easy, CURLOPT_POST, 1)
        waypost_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(length))
        waypost_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headers)
        waypost_curl_set_transfer(easy, CURLOPT_READFUNCTION, giveBody)
        waypost_curl_set_pointer(easy, CURLOPT_READDATA, context)
        waypost_curl_set_seek(easy, rewindBody)
        waypost_curl_set_pointer(easy, CURLOPT_SEEKDATA, context)
        waypost_curl_set_transfer(easy, CURLOPT_WRITEFUNCTION, receiveAnswer)
        waypost_curl_set_pointer(easy, CURLOPT_WRITEDATA, context)
        waypost_curl_set_transfer(easy, CURLOPT_HEADERFUNCTION, receiveHeader)
        waypost_curl_set_pointer(easy, CURLOPT_HEADERDATA, context)
        // The debug callback is called only in verbose mode; nothing is printed.
        waypost_curl_set_long(easy, CURLOPT_VERBOSE, 1)
        waypost_curl_set_trace(easy, countSent)
        waypost_curl_set_pointer(easy, CURLOPT_DEBUGDATA, context)
        waypost_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, connectLimit)
        // A silent name server must delay neither a stop nor the next retry.
        waypost_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        // One request at a time gains nothing from HTTP/2, and libcurl 7.88 had trouble with
        // uploads over it.
        waypost_curl_set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        waypost_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
        waypost_curl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let file = settings.certificateFile {
            waypost_curl_set_string(easy, CURLOPT_CAINFO, file)
        }
        if let pin = settings.pinnedPublicKey {
            waypost_curl_set_string(easy, CURLOPT_PINNEDPUBLICKEY, pin)
        }
        if let rate = settings.maxRate {
            waypost_curl_set_offset(easy, CURLOPT_MAX_SEND_SPEED_LARGE, curl_off_t(rate))
            // A full buffer is sent as a burst, so this is the smallest that libcurl allows.
            waypost_curl_set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16 << 10)
        }
        waypost_curl_set_pointer(easy, CURLOPT_CONNECT_TO, route)
        // An unencrypted request stays on this machine, even if `http_proxy` is set.
        if settings.staysOnThisMachine || settings.connectsToLoopback {
            waypost_curl_set_string(easy, CURLOPT_NOPROXY, "*")
        }
    }

    /// Drives the request to its end; returns nil when stopped.
    private func perform(
        _ exchange: ExchangeContext,
        meanwhile: () -> Bool,
        until stop: StopSignal
    ) -> CURLcode? {
        var running: Int32 = 1
        var hasTime = true
        var watch = ProgressMonitor(limit: settings.patience, now: clock.now())
        while true {
            stop.life.during("curl_multi_perform") { _ = curl_multi_perform(multi, &running) }
            if running == 0 { break }
            if stop.isRaised { return nil }
            guard goesOn(&watch, exchange) else { return CURLE_OPERATION_TIMEDOUT }
            if hasTime, exchange.given > 0 {
                stop.life.rests()
                hasTime = meanwhile()
                continue
            }
            var waiting = curl_waitfd()
            waiting.fd = stop.descriptor
            waiting.events = Int16(CURL_WAIT_POLLIN)
            // libcurl wakes up for its own timers; this sets how often progress is checked.
            let pause = max(10, min(1000, watch.limit.milliseconds / 8))
            stop.life.enters("curl_multi_poll", for: .milliseconds(pause))
            curl_multi_poll(multi, &waiting, 1, Int32(pause), nil)
        }
        var left: Int32 = 0
        guard let message = curl_multi_info_read(multi, &left) else { return CURLE_GOT_NOTHING }
        return message.pointee.data.result
    }

    private func goesOn(_ watch: inout ProgressMonitor, _ exchange: ExchangeContext) -> Bool {
        var connected: curl_off_t = 0
        waypost_curl_get_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &connected)
        let now = clock.now()
        guard connected > 0 else {
            watch.isConnecting(now)
            return true
        }
        let mark = ProgressMonitor.Mark(
            given: exchange.given,
            unsent: waypost_curl_unsent(multi),
            answered: exchange.headerBytes + exchange.answered
        )
        return watch.goesOn(mark, now)
    }

    private func answer(_ exchange: ExchangeContext) -> Answer {
        var status = 0
        var type: UnsafeMutablePointer<CChar>?
        waypost_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
        waypost_curl_get_string(easy, CURLINFO_CONTENT_TYPE, &type)
        let header = AnswerHeader(easy: easy)
        var answer = Answer(
            status: status,
            contentType: type.map { String(cString: $0) } ?? "",
            body: exchange.answer,
            retryAfter: header.retryAfter,
            acceptEncoding: header.field("Accept-Encoding")
        )
        answer.reply = exchange.reply
        answer.cutAt = exchange.isCut ? exchange.answered : nil
        answer.isOfSecondTry = exchange.isRewound
        answer.etag = header.field("ETag")
        answer.region = header.field("x-amz-bucket-region")
        answer.location = header.field("Location")
        return answer
    }

    /// Returns the bytes that the last request sent and received in HTTP, without TLS and TCP.
    private func bytes(_ exchange: ExchangeContext) -> Traffic {
        var header = 0
        var download: curl_off_t = 0
        waypost_curl_get_long(easy, CURLINFO_HEADER_SIZE, &header)
        waypost_curl_get_offset(easy, CURLINFO_SIZE_DOWNLOAD_T, &download)
        return Traffic(sent: exchange.sent, received: Int64(header) + Int64(download))
    }

    private func failure(_ code: CURLcode, _ exchange: ExchangeContext) -> Failure {
        guard !exchange.isHeaderTooLong else {
            return Failure(
                "\(settings.server): the header of the answer is longer than \(AnswerHeader.limit) bytes; check \(settings.names.endpoint)",
                code: .server
            )
        }
        // libcurl's own text may name the host, and a host can be the secret.
        let detail = settings.alias == nil ? String(cString: errorText) : ""
        let isCut = code == CURLE_OK
        var text = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        if isCut { text = "the connection ended in the header of the answer" }
        if code == CURLE_OPERATION_TIMEDOUT, detail.isEmpty {
            text = "no progress for \(settings.patience)"
        }
        // The text may quote a certificate from the other side.
        return Failure(
            "\(settings.server): \(text.plainWords(atMost: 300)) (curl \(code.rawValue))"
                + ConnectionAdvice.text(code, detail, settings.names),
            code: code == CURLE_BAD_CONTENT_ENCODING ? .server : .network
        )
    }
}
