// A browser without a screen.
package import Foundation
import Support
import Testing

/// Requests pages with a session; each request has a new connection.
package final class PageClient {
    package var port: UInt16
    /// Additional header fields of each request.
    package var extra = ""
    package private(set) var token = ""
    /// The header of the last login.
    package private(set) var setCookie = ""
    private var cookie: String

    /// The secret in the cookie.
    package var session: String { String(cookie.dropFirst("waypost_viewer=".count)) }

    package init(_ receiver: ReceiverProcess, cookie: String = "") {
        port = receiver.port
        self.cookie = cookie
    }

    /// Creates a viewer and logs in.
    package convenience init(_ receiver: ReceiverProcess, viewer: String, role: String = "viewer")
        throws
    {
        self.init(receiver)
        let outcome = try receiver.command("viewers", "add", viewer, "--role", role)
        token = outcome.output.trimmingCharacters(in: .newlines)
        #expect(try logIn(token) == 303, "\(outcome.error)")
    }

    package func get(_ path: String) throws -> RawClient.Answer { try request("GET", path) }

    /// Requests a page until it contains a text, and returns it.
    package func page(_ path: String = "/", with text: String) throws -> String {
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

    /// Opens a connection to a live page.
    package func live(
        _ page: String = "/",
        _ method: String = "GET",
        version: String = "HTTP/1.1",
        from address: String = "127.0.0.1",
        window: Int32 = 0
    ) throws -> RawClient {
        try open("/live\(page)", method, version: version, from: address, window: window)
    }

    /// Requests a path and leaves the answer to be read.
    package func open(
        _ path: String,
        _ method: String = "GET",
        version: String = "HTTP/1.1",
        from address: String = "127.0.0.1",
        window: Int32 = 0
    ) throws -> RawClient {
        let client = try RawClient(port: port, from: address, window: window)
        client.send("\(method) \(path) \(version)\r\nHost: r\r\n\(fields)\r\n")
        return client
    }

    package func request(_ method: String, _ path: String, _ body: String = "") throws
        -> RawClient.Answer
    {
        let client = try RawClient(port: port)
        client.send(
            "\(method) \(path) HTTP/1.1\r\nHost: r\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        return try #require(client.answer())
    }

    /// Returns an answer's bytes and status, using curl because they may not be text.
    package func download(_ path: String, range: String? = nil) throws -> (Data, Int) {
        let fields = ["-H", "Cookie: \(cookie)"] + (range.map { ["-H", "Range: \($0)"] } ?? [])
        let outcome = try Process.run(
            "/usr/bin/curl",
            ["-s", "-w", "%{stderr}%{http_code}", "http://127.0.0.1:\(port)\(path)"] + fields
        )
        return (outcome.data, Int(outcome.error) ?? 0)
    }

    /// Logs in, keeps the session, and returns the status.
    package func logIn(_ token: String) throws -> Int {
        let written = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        return try logIn(form: "username=viewer&token=\(written)").status
    }

    /// Sends a login form and keeps the session, if there is one.
    package func logIn(form: String) throws -> RawClient.Answer {
        let answer = try request("POST", "/login", form)
        let lines = answer.header.components(separatedBy: "\r\n")
        if let line = lines.first(where: { $0.hasPrefix("Set-Cookie: ") }) {
            setCookie = String(line.dropFirst(12))
            cookie = String(setCookie.prefix { $0 != ";" })
        }
        return answer
    }
}
