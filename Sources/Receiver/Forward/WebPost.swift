// Posts a body to a URL through libcurl.
import CCurl
import Host
import HTTP

/// Owns libcurl's handles for one request; used by one thread.
struct WebPost: ~Copyable {
    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer

    private init() throws {
        guard Transport.isInitialised, let multi = curl_multi_init() else {
            throw Trouble("libcurl could not be started")
        }
        guard let easy = curl_easy_init() else {
            curl_multi_cleanup(multi)
            throw Trouble("libcurl could not be started")
        }
        (self.multi, self.easy) = (multi, easy)
    }

    deinit {
        curl_multi_remove_handle(multi, easy)
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
    }

    /// A server's answer, complete or not.
    struct Answer {
        var status: Int
        /// The beginning of the body, enough for an error message.
        var text: String
    }

    /// Posts an alert; returns when the server has answered with 2xx.
    ///
    /// Throws Trouble for any other answer, and like `exchange`.
    static func send(
        _ json: String,
        to url: String,
        userAgent: String,
        limit: Duration = .seconds(30),
        until stop: StopSignal
    ) throws {
        let answer = try exchange(
            json,
            headers: ["Content-Type: application/json"],
            to: url,
            as: userAgent,
            limit: limit,
            until: stop,
            name: "the alert server"
        )
        guard !(200...299).contains(answer.status) else { return }
        throw Trouble("the alert server answered \(answer.status)")
    }

    /// Posts a body; returns when the server has answered.
    ///
    /// `limit`: for the whole request; `name`: the server's name in messages. Throws Trouble for a
    /// network failure or a stop. Does not follow redirects. Errors never contain the URL, which
    /// may hold a secret.
    static func exchange(
        _ body: String,
        headers lines: [String],
        to url: String,
        as userAgent: String,
        limit: Duration,
        until stop: StopSignal,
        name: String
    ) throws -> Answer {
        let post = try WebPost()
        // An empty Expect stops libcurl from waiting for `100 Continue`.
        let headers = (lines + ["Expect:"]).reduce(nil) { curl_slist_append($0, $1) }
        defer { curl_slist_free_all(headers) }
        let text = AnswerText()
        return try withExtendedLifetime(text) {
            post.prepare(body, url, userAgent, headers, limit, text)
            curl_multi_add_handle(post.multi, post.easy)
            let code = try post.perform(until: stop)
            var status = 0
            waypost_curl_get_long(post.easy, CURLINFO_RESPONSE_CODE, &status)
            // The status decides: a server that sent one has the data, even if the rest never came.
            guard status == 0 else {
                return Answer(status: status, text: String(decoding: text.bytes, as: UTF8.self))
            }
            let reason = String(cString: curl_easy_strerror(code))
            throw Trouble("\(name): \(reason) (curl \(code.rawValue))")
        }
    }

    private borrowing func prepare(
        _ body: String,
        _ url: String,
        _ userAgent: String,
        _ headers: UnsafeMutablePointer<curl_slist>?,
        _ limit: Duration,
        _ text: AnswerText
    ) {
        waypost_curl_set_string(easy, CURLOPT_URL, url)
        waypost_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        waypost_curl_set_string(easy, CURLOPT_USERAGENT, userAgent)
        waypost_curl_set_string(easy, CURLOPT_COPYPOSTFIELDS, body)
        waypost_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headers)
        waypost_curl_set_transfer(easy, CURLOPT_WRITEFUNCTION, takeAnswer)
        let context = Unmanaged.passUnretained(text).toOpaque()
        waypost_curl_set_pointer(easy, CURLOPT_WRITEDATA, context)
        waypost_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(limit.milliseconds))
        // A secret for this machine must not go to a proxy.
        if case .success(let place) = Endpoint.parse(url), place.isLoopback {
            waypost_curl_set_string(easy, CURLOPT_NOPROXY, "*")
        }
        waypost_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // An unresponsive name server must not delay a stop.
        waypost_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
        waypost_curl_set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        waypost_curl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    }

    private borrowing func perform(until stop: StopSignal) throws -> CURLcode {
        var running: Int32 = 1
        while true {
            curl_multi_perform(multi, &running)
            if running == 0 { break }
            guard !stop.isRaised else { throw Trouble("stopped") }
            var waiting = curl_waitfd()
            waiting.fd = stop.descriptor
            waiting.events = Int16(CURL_WAIT_POLLIN)
            curl_multi_poll(multi, &waiting, 1, 1000, nil)
        }
        var left: Int32 = 0
        return curl_multi_info_read(multi, &left)?.pointee.data.result ?? CURLE_GOT_NOTHING
    }
}

/// The beginning of an answer; lives as long as its request.
private final class AnswerText {
    static let most = 4096

    var bytes: [UInt8] = []
}

/// A C callback as a plain function: a closure could carry an actor's isolation along.
private func takeAnswer(
    _ part: UnsafeMutablePointer<CChar>?,
    _ size: Int,
    _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let part, let context else { return size * count }
    let text = Unmanaged<AnswerText>.fromOpaque(context).takeUnretainedValue()
    let room = min(AnswerText.most - text.bytes.count, size * count)
    text.bytes += UnsafeRawBufferPointer(start: part, count: room)
    return size * count
}
