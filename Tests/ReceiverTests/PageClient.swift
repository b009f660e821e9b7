// A browser without a screen.
import Foundation
import ReceiverSupport
import Support
import Testing

/// Asks for pages with a session; each request on a connection of its own.
final class PageClient {
    var port: UInt16
    /// Further fields of each request.
    var extra = ""
    private(set) var token = ""
    /// As the last log-in set it.
    private(set) var setCookie = ""
    private var cookie: String

    /// The secret in the cookie.
    var session: String { String(cookie.dropFirst("waypost_viewer=".count)) }

    init(_ receiver: ReceiverProcess, cookie: String = "") {
        port = receiver.port
        self.cookie = cookie
    }

    /// A new viewer who has logged in.
    convenience init(_ receiver: ReceiverProcess, viewer: String) throws {
        self.init(receiver)
        let outcome = try receiver.command("viewers", "add", viewer)
        token = outcome.output.trimmingCharacters(in: .newlines)
        #expect(try logIn(token) == 303, "\(outcome.error)")
    }

    func get(_ path: String) throws -> RawClient.Answer { try request("GET", path) }

    /// Asks for a page until it says something, and returns it.
    func page(_ path: String = "/", with text: String) throws -> String {
        var last = ""
        let isThere: Bool = try eventually {
            last = try get(path).body
            return last.contains(text)
        }
        #expect(isThere, "\(text) in \(last)")
        return last
    }

    private var fields: String {
        cookie.isEmpty ? extra : "\(extra)Cookie: theme=x; \(cookie)\r\n"
    }

    /// A connection on which a page comes as it changes.
    func live(
        _ page: String = "/",
        _ method: String = "GET",
        version: String = "HTTP/1.1",
        from address: String = "127.0.0.1",
        window: Int32 = 0
    ) throws -> RawClient {
        let client = try RawClient(port: port, from: address, window: window)
        client.send("\(method) /live\(page) \(version)\r\nHost: r\r\n\(fields)\r\n")
        return client
    }

    func request(_ method: String, _ path: String, _ body: String = "") throws -> RawClient.Answer {
        let client = try RawClient(port: port)
        client.send(
            "\(method) \(path) HTTP/1.1\r\nHost: r\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        return try #require(client.answer())
    }

    /// The bytes of an answer, by curl: they need not be text.
    func download(_ path: String, range: String? = nil) throws -> (Data, Int) {
        let fields = ["-H", "Cookie: \(cookie)"] + (range.map { ["-H", "Range: \($0)"] } ?? [])
        let outcome = try Process.run(
            "/usr/bin/curl",
            ["-s", "-w", "%{stderr}%{http_code}", "http://127.0.0.1:\(port)\(path)"] + fields
        )
        return (outcome.data, Int(outcome.error) ?? 0)
    }

    /// The status of the answer; the session is kept.
    func logIn(_ token: String) throws -> Int {
        let written = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let answer = try request("POST", "/login", "username=viewer&token=\(written)")
        let lines = answer.header.components(separatedBy: "\r\n")
        if let line = lines.first(where: { $0.hasPrefix("Set-Cookie: ") }) {
            setCookie = String(line.dropFirst(12))
            cookie = String(setCookie.prefix { $0 != ";" })
        }
        return answer.status
    }
}
