// Reads the header of an answer.
import CCurl

/// The header of the last answer on an easy handle; valid until the next request.
struct AnswerHeader {
    /// The most bytes of all header lines; an answer with more fails.
    static let limit = 64 << 10

    let easy: UnsafeMutableRawPointer

    /// The seconds that the server asked to wait; 0 if it did not ask.
    ///
    /// A date is compared with the server's own `Date`: this device's clock may be decades off.
    var retryAfter: Int {
        var seconds: curl_off_t = 0
        waypost_curl_get_offset(easy, CURLINFO_RETRY_AFTER, &seconds)
        guard let text = lines("Retry-After").first, text.contains(","),
            let then = date(text), let now = lines("Date").first.flatMap(date)
        else { return Int(seconds) }
        return max(0, then - now)
    }

    /// Returns a field, its lines joined by commas (RFC 9110, section 5.3), or "".
    func field(_ name: String) -> String { lines(name).joined(separator: ",") }

    private func lines(_ name: String) -> [String] {
        var lines: [String] = []
        var header: UnsafeMutablePointer<curl_header>?
        while curl_easy_header(easy, name, lines.count, UInt32(CURLH_HEADER), -1, &header)
            == CURLHE_OK,
            let value = header?.pointee.value
        {
            lines.append(String(cString: value))
        }
        return lines
    }

    private func date(_ text: String) -> Int? {
        let seconds = curl_getdate(text, nil)
        return seconds >= 0 ? Int(seconds) : nil
    }
}
