// The routes of the fleet page, and access to it.
import FoundationEssentials
import Host
package import ServerArchive
package import ServerBase
package import ServerIndex
package import ServerWeb
import Synchronization

/// The pages, rendered on workers' threads, two at a time, so that no gateway has to wait.
package final class FleetPage: Sendable {
    /// The maximum size of a form in bytes.
    private static let formLimit = 4096
    /// The same with settings: a line end is six bytes there.
    private static let settingsLimit = 6 * DeviceJobs.maxSettings + formLimit
    private static let cookie = "waypost_viewer"

    package let viewers: Viewers
    package let names: Names
    let looks: FleetRenderings
    let attempts = Mutex(AttemptLimit())
    /// Page requests in progress; further ones are refused.
    private let lookers = Turn(8)
    /// Rendering needs memory and time, so at most two pages are rendered at once.
    let gate = Turn(2)
    /// Requests to the read API in progress: apart, because a page's script sends several at once.
    let readers = Turn(12)
    private let openPages: LivePages
    /// By their addresses.
    private let files: [String: HTTPAnswer]

    /// `directory`: contains an archive.
    package init(
        directory: String,
        enrolments: Enrolments,
        jobs: DeviceJobs,
        fleet: Fleet,
        libraries: WebLibraries
    ) throws {
        files = try PageAssets().answers.merging(libraries.answers) { own, _ in own }
        viewers = try Viewers(directory: directory)
        names = try Names(directory: directory)
        looks = FleetRenderings(
            directory: directory,
            enrolments: enrolments,
            names: names,
            jobs: jobs,
            fleet: fleet,
            libraries: libraries
        )
        openPages = try LivePages(changes: { fleet.changes }) { [viewers] session in
            _ = try? viewers.refresh(waits: true)
            return viewers.isLoggedIn(session, at: Date())
        }
        try openPages.start()
    }

    package func finish() { openPages.finish() }

    // MARK: By the header

    /// Nil if there is nothing at the path.
    package func plan(_ head: RequestHead) throws -> RequestPlan? {
        switch head.route {
        case .logIn where head.method == "POST", .logOut:
            try head.expect("POST")
            try head.expectOwnPage()
            return .body(limit: Self.formLimit)
        case .logIn:
            try head.expect("GET")
            try expectViewers()
            return .answer(
                HTTPAnswer(logIn: head.query["once"].map { .logIn(once: $0) } ?? .logIn())
            )
        case .page(let page): return try plan(page, head)
        case .changes(let isLive): return try stream(head, isLive: isLive)
        case .file(let address):
            guard let file = files[address] else { return nil }
            try head.expect("GET")
            return .answer(file)
        default: return nil
        }
    }

    private func plan(_ page: PageRoute, _ head: RequestHead) throws -> RequestPlan {
        let isForm = head.method == "POST" && page.hasForm
        if isForm { try head.expectOwnPage() } else { try head.expect("GET") }
        try expectViewers()
        guard role(head) != nil else { return .answer(HTTPAnswer(seeOther: "/login")) }
        let limit = if case .settings = page { Self.settingsLimit } else { Self.formLimit }
        return .body(limit: isForm ? limit : 0, isKnown: true)
    }

    /// Streams the changes of a page.
    private func stream(_ head: RequestHead, isLive: Bool) throws -> RequestPlan {
        try head.expect("GET")
        try expectViewers()
        guard let session = viewer(head) else { throw HTTPError(status: 401, reason: "log in") }
        guard isLive else { throw FleetRenderings.nothing }
        // libmicrohttpd 0.9.75 would send a body without a length even for HEAD.
        guard head.method == "GET" else { return .answer(HTTPAnswer(200, body: [])) }
        return .stream(try openPages.open(session))
    }

    func expectViewers() throws {
        _ = try viewers.refresh(waits: false)
        guard viewers.isEmpty else { return }
        throw HTTPError(
            status: 404,
            reason: "the page has no viewer yet; run: waypost-receiver viewers add NAME"
        )
    }

    /// Returns the session if it is logged in.
    package func viewer(_ head: RequestHead) -> GivenSecret? {
        session(head).flatMap { viewers.isLoggedIn($0, at: Date()) ? $0 : nil }
    }

    /// Returns the role of who sent the request; nil if it is nobody who is logged in.
    private func role(_ head: RequestHead) -> ViewerRole? {
        session(head).flatMap { viewers.role(of: $0, at: Date()) }
    }

    private func session(_ head: RequestHead) -> GivenSecret? {
        let pairs = (head.fields[.cookie] ?? "").split(separator: ";").map { trimmed($0) }
        return pairs.first { $0.hasPrefix("\(Self.cookie)=") }.map {
            GivenSecret(text: String($0.dropFirst(Self.cookie.utf8.count + 1)))
        }
    }

    // MARK: On a worker's thread

    package func answer(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        _ = try viewers.refresh(waits: true)
        switch head.route {
        case .logIn: return try logIn(head, body)
        case .logOut: return try logOut(head)
        case .page(let page): return try answer(page, head, body)
        default: throw FleetRenderings.nothing
        }
    }

    private func answer(_ page: PageRoute, _ head: RequestHead, _ body: Spool) throws -> HTTPAnswer
    {
        guard let role = role(head) else { return HTTPAnswer(seeOther: "/login") }
        let answer = try lookers.take(within: .zero) {
            try gate.take {
                let looks = try looks.reading(for: role)
                let now = SystemClock().wall().milliseconds
                return try head.method == "POST"
                    ? looks.save(page, body, head, at: now) : looks.answer(page, head, at: now)
            }
        }
        guard let answer else {
            throw HTTPError(status: 503, reason: "too many page requests at once", retryAfter: 1)
        }
        return answer
    }

    /// Returns a refusal as a page if a browser asked for one, else as it is.
    package func refusal(_ answer: HTTPAnswer, _ error: any Error, to head: RequestHead)
        -> HTTPAnswer
    {
        guard head.route.isForPeople, let refusal = error as? HTTPError,
            head.fields[.accept]?.contains(text: "text/html") == true || role(head) != nil
        else { return answer }
        let now = role(head).map { _ in SystemClock().wall().milliseconds }
        var page = HTTPAnswer(answer.status, page: .refusal(refusal, now: now))
        page.headers += answer.headers.filter { $0.name != "Content-Type" }
        return page
    }

    private func logIn(_ head: RequestHead, _ body: Spool) throws -> HTTPAnswer {
        let (once, token) = try body.withView {
            (FormField.read("once", $0), FormField.read("token", $0) ?? "")
        }
        let given = GivenSecret(text: trimmed(once ?? token))
        let session =
            try once == nil
            ? viewers.logIn(given, at: Date()) : viewers.logIn(link: given, at: Date())
        guard let session else {
            if let seconds = attempts.withLock({ $0.refused(head.address, at: .now) }) {
                let wait = "Too many wrong tokens or links: try again in \(seconds) s."
                var answer = HTTPAnswer(429, logIn: .logIn(wrong: wait))
                answer.headers.append(("Retry-After", "\(seconds)"))
                return answer
            }
            let wrong =
                once == nil
                ? "This token is not known."
                : "This link was used already, or is older than an hour. Ask for another one."
            return HTTPAnswer(403, logIn: .logIn(wrong: wrong))
        }
        return cookieAnswer(head, session.text, age: Viewers.sessionDays * 86_400, to: "/")
    }

    private func logOut(_ head: RequestHead) throws -> HTTPAnswer {
        if let session = session(head) { try viewers.logOut(session) }
        return cookieAnswer(head, "", age: 0, to: "/login")
    }

    private func cookieAnswer(_ head: RequestHead, _ value: String, age: Int, to path: String)
        -> HTTPAnswer
    {
        let cookie =
            "\(Self.cookie)=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Strict"
            + (head.isEncrypted ? "; Secure" : "")
        var answer = HTTPAnswer(seeOther: path)
        answer.headers.append(("Set-Cookie", cookie))
        return answer
    }
}

extension RequestHead {
    /// Throws an HTTPError for a form sent by another site's page.
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
        throw HTTPError(status: 403, reason: reason)
    }
}
