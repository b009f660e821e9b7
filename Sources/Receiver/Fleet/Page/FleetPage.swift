// The routes of the fleet page, and access to it.
import Dispatch
import FoundationEssentials
import Host
import Synchronization

/// The read-only pages, rendered on workers' threads, two at a time, so that no gateway has to
/// wait.
final class FleetPage: Sendable {
    /// The maximum size of a form in bytes.
    private static let formLimit = 4096
    private static let live = "/live"
    private static let cookie = "waypost_viewer"

    private let viewers: Viewers
    private let looks: FleetRenderings
    private let attempts = Mutex(AttemptLimit())
    /// Page requests in progress; further ones are refused.
    private let lookers = DispatchSemaphore(value: 8)
    /// Rendering needs memory and time, so at most two pages are rendered at once.
    private let gate = DispatchSemaphore(value: 2)
    private let openPages: LivePages

    /// `directory`: contains an archive.
    init(directory: String, enrolments: Enrolments, fleet: Fleet) throws {
        viewers = try Viewers(directory: directory)
        looks = FleetRenderings(
            directory: directory,
            enrolments: enrolments,
            fleet: fleet,
            spectrograms: try Spectrograms(directory: directory)
        )
        openPages = try LivePages(changes: { fleet.changes }) { [viewers] session in
            _ = try? viewers.refresh(waits: true)
            return viewers.isLoggedIn(session, at: Date())
        }
        try openPages.start()
    }

    func finish() { openPages.finish() }

    // MARK: By the header

    /// Nil if the path does not belong to the page.
    func plan(_ head: RequestHead) throws -> RequestPlan? {
        switch head.path {
        case "/style.css", "/icon.svg", "/live.js":
            try head.expect("GET")
            return Self.files[head.path].map { .answer($0) }
        case "/login" where head.method == "POST", "/logout":
            try head.expect("POST")
            try head.expectOwnPage()
            return .body(limit: Self.formLimit)
        case "/login":
            try head.expect("GET")
            try expectViewers()
            return .answer(
                HTTPAnswer(logIn: head.query["once"].map { .logIn(once: $0) } ?? .logIn())
            )
        default:
            if head.path.hasPrefix(Self.live + "/") { return try stream(head) }
            guard head.path == "/" || head.path.hasPrefix("/device/") else { return nil }
            try head.expect("GET")
            try expectViewers()
            guard viewer(head) != nil else { return .answer(HTTPAnswer(seeOther: "/login")) }
            return .body(limit: 0, isKnown: true)
        }
    }

    /// Streams the changes of a page, the overview or a device's; the path is `/live` plus its path.
    private func stream(_ head: RequestHead) throws -> RequestPlan {
        try head.expect("GET")
        try expectViewers()
        guard let session = viewer(head) else { throw HTTPRefusal(status: 401, reason: "log in") }
        let parts = head.path.split(separator: "/").dropFirst().map(String.init)
        guard
            head.path == "\(Self.live)/"
                || parts.count == 2 && parts[0] == "device" && isName(parts[1])
        else { throw FleetRenderings.nothing }
        // libmicrohttpd 0.9.75 would send a body without a length even for HEAD.
        guard head.method == "GET" else { return .answer(HTTPAnswer(200, body: [])) }
        return .stream(try openPages.open(session))
    }

    private static let files = [
        "/style.css": file("text/css; charset=utf-8", Style.sheet),
        "/icon.svg": file("image/svg+xml", Style.icon),
        "/live.js": file("text/javascript; charset=utf-8", LiveScript.text),
    ]

    private static func file(_ type: String, _ text: StaticString) -> HTTPAnswer {
        var answer = HTTPAnswer(200, type: type, text.withUTF8Buffer { Array($0) })
        answer.headers.append(("Cache-Control", "max-age=300"))
        return answer
    }

    private func expectViewers() throws {
        _ = try viewers.refresh(waits: false)
        guard viewers.isEmpty else { return }
        throw HTTPRefusal(
            status: 404,
            reason: "the page has no viewer yet; run: waypost-receiver viewers add NAME"
        )
    }

    /// Returns the session if it is logged in.
    private func viewer(_ head: RequestHead) -> GivenSecret? {
        session(head).flatMap { viewers.isLoggedIn($0, at: Date()) ? $0 : nil }
    }

    private func session(_ head: RequestHead) -> GivenSecret? {
        let pairs = (head.fields[.cookie] ?? "").split(separator: ";").map { trimmed($0) }
        return pairs.first { $0.hasPrefix("\(Self.cookie)=") }.map {
            GivenSecret(text: String($0.dropFirst(Self.cookie.utf8.count + 1)))
        }
    }

    // MARK: On a worker's thread

    func answer(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        _ = try viewers.refresh(waits: true)
        switch head.path {
        case "/login": return try logIn(head, body)
        case "/logout": return try logOut(head)
        default: break
        }
        guard viewer(head) != nil else { return HTTPAnswer(seeOther: "/login") }
        guard lookers.wait(timeout: .now()) == .success else {
            throw HTTPRefusal(status: 503, reason: "too many page requests at once", retryAfter: 1)
        }
        defer { lookers.signal() }
        gate.wait()
        defer { gate.signal() }
        return try looks.answer(head, at: SystemClock().wall().milliseconds)
    }

    private func logIn(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        let client = head.address
        let clock = ContinuousClock()
        if let seconds = attempts.withLock({ $0.wait(client, at: clock.now) }) {
            let wait = "Too many wrong tokens or links: try again in \(seconds) s."
            var answer = HTTPAnswer(429, logIn: .logIn(wrong: wait))
            answer.headers.append(("Retry-After", "\(seconds)"))
            return answer
        }
        // Counted before the check, so that parallel attempts count too.
        attempts.withLock { $0.failed(client, at: clock.now) }
        let (once, token) = try body.withView {
            (FormField.read("once", $0), FormField.read("token", $0) ?? "")
        }
        let given = GivenSecret(text: trimmed(once ?? token))
        let session =
            try once == nil
            ? viewers.logIn(given, at: Date()) : viewers.logIn(link: given, at: Date())
        guard let session else {
            let wrong =
                once == nil
                ? "This token is not known."
                : "This link was used already, or is older than an hour. Ask for another one."
            return HTTPAnswer(403, logIn: .logIn(wrong: wrong))
        }
        attempts.withLock { $0.succeeded(client) }
        return cookieAnswer(head, session.text, age: Viewers.sessionDays * 86_400, to: "/")
    }

    private func logOut(_ head: RequestHead) throws -> HTTPAnswer {
        if let session = session(head) { try viewers.logOut(session) }
        return cookieAnswer(head, "", age: 0, to: "/login")
    }

    private func cookieAnswer(_ head: RequestHead, _ value: String, age: Int, to path: String)
        -> HTTPAnswer
    {
        let isSecure = head.fields[.forwardedProto]?.lowercased() == "https"
        let cookie =
            "\(Self.cookie)=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
        var answer = HTTPAnswer(seeOther: path)
        answer.headers.append(("Set-Cookie", cookie))
        return answer
    }
}

extension RequestHead {
    /// Throws an HTTPRefusal for a form sent by another site's page.
    ///
    /// A proxy may hide the host name. `Sec-Fetch-Site` does not depend on it, and pages cannot set
    /// it.
    func expectOwnPage() throws {
        guard let origin = fields[.origin]?.lowercased(), fields[.fetchSite] != "same-origin" else {
            return
        }
        let host = fields[.host]?.lowercased() ?? ""
        guard !["http://\(host)", "https://\(host)"].contains(origin) else { return }
        let reason =
            "the form comes from \(origin), not from \(host): configure the proxy to pass the Host header unchanged"
        throw HTTPRefusal(status: 403, reason: reason)
    }

    /// Throws an HTTPRefusal for any other method; GET includes HEAD.
    func expect(_ wanted: String) throws {
        guard method != wanted, !(wanted == "GET" && method == "HEAD") else { return }
        throw HTTPRefusal(status: 405, reason: "use \(wanted)", allow: wanted)
    }
}
