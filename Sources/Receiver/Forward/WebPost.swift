// A body posted to an address, through libcurl.
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

    /// What a server has answered, whatever became of the rest of it.
    struct Answer {
        var status: Int
        /// As much of the body as tells why.
        var text: String
    }

    /// Returns when the server of alerts has answered with 2xx, whatever its answer says.
    ///
    /// Throws Trouble for any other answer, and as `exchange` does.
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
            name: "the server of alerts"
        )
        guard !(200...299).contains(answer.status) else { return }
        throw Trouble("the server of alerts answered \(answer.status)")
    }

    /// Returns when the server has answered.
    ///
    /// `limit`: of the whole request; `name`: of the server, for people.
    /// Throws Trouble for a failure of the network, or a stop. Redirections are not followed. No error names the
    /// address: it may have a secret in it.
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
            // The status counts: a server that has said so has it, even if the rest of the answer never came.
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
        // A secret that is meant for this machine goes to no proxy.
        if case .success(let place) = Endpoint.parse(url), place.isLoopback {
            waypost_curl_set_string(easy, CURLOPT_NOPROXY, "*")
        }
        waypost_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // So that a name server that says nothing delays no stop.
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

/// The begin of an answer; lives as long as its request.
private final class AnswerText {
    static let most = 4096

    var bytes: [UInt8] = []
}

/// A plain function: libcurl calls it, and a closure could carry an actor's isolation along.
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
