// The page of the fleet: who may see it, and what is shown under which path.
import FoundationEssentials
import Host
import SQLite
import Synchronization

/// Read-only; on workers' threads, a few looks at a time, so that no gateway waits for a viewer.
final class FleetPage: Sendable {
    /// Most bytes of a form.
    private static let formLimit = 4096
    private static let mostLooks = 4
    private static let cookie = "waypost_viewer"

    private let directory: String
    private let enrolments: Enrolments
    private let follower: IndexFollower
    private let viewers: Viewers
    private let listening: ListeningTime
    private let attempts = Mutex(AttemptLimit())
    private let looks = Mutex(0)

    /// `directory`: with an archive in it already.
    init(directory: String, enrolments: Enrolments, follower: IndexFollower) throws {
        self.directory = directory
        self.enrolments = enrolments
        self.follower = follower
        viewers = try Viewers(directory: directory)
        let heard = try Contacts.read(directory: directory).values.compactMap(\.lastSeen).max()
        listening = ListeningTime(
            start: SystemClock().wall().milliseconds,
            heardBefore: heard?.milliseconds ?? 0
        )
    }

    // MARK: By the header

    /// Nil for a path that is none of the page's.
    func plan(_ head: RequestHead) throws -> RequestPlan? {
        switch head.path {
        case "/style.css", "/icon.svg":
            try head.expect("GET")
            return .answer(head.path == "/icon.svg" ? Self.icon : Self.sheet)
        case "/login" where head.method == "POST", "/logout":
            try head.expect("POST")
            return .body(limit: Self.formLimit)
        case "/login":
            try head.expect("GET")
            try expectViewers()
            return .answer(HTTPAnswer(page: .logIn()))
        default:
            guard head.path == "/" || head.path.hasPrefix("/device/") else { return nil }
            try head.expect("GET")
            try expectViewers()
            guard isLoggedIn(head) else { return .answer(HTTPAnswer(seeOther: "/login")) }
            return .body(limit: 0)
        }
    }

    private static let sheet = file("text/css; charset=utf-8", Style.sheet)
    private static let icon = file("image/svg+xml", Style.icon)

    private static func file(_ type: String, _ text: StaticString) -> HTTPAnswer {
        var answer = HTTPAnswer(200, type: type, text.withUTF8Buffer { Array($0) })
        answer.headers.append(("Cache-Control", "max-age=300"))
        return answer
    }

    private func expectViewers() throws {
        _ = try viewers.refresh(waits: false)
        guard viewers.isEmpty else { return }
        throw Refusal(
            status: 404,
            reason: "the page has no viewer: waypost-receiver viewers add NAME"
        )
    }

    private func isLoggedIn(_ head: RequestHead) -> Bool {
        session(head).map { viewers.isLoggedIn($0, at: Date()) } ?? false
    }

    private func session(_ head: RequestHead) -> GivenSecret? {
        let pairs = (head.fields[.cookie] ?? "").split(separator: ";").map { trimmed($0) }
        return pairs.first { $0.hasPrefix("\(Self.cookie)=") }.map {
            GivenSecret(text: String($0.dropFirst(Self.cookie.utf8.count + 1)))
        }
    }

    // MARK: On a worker's thread

    /// `client`: whom a wrong token is counted for.
    func answer(_ head: RequestHead, _ body: Spool, client: String) throws -> HTTPAnswer {
        _ = try viewers.refresh(waits: true)
        switch head.path {
        case "/login": return try logIn(head, body, client)
        case "/logout": return try logOut(head)
        default: break
        }
        guard isLoggedIn(head) else { return HTTPAnswer(seeOther: "/login") }
        let isFree = looks.withLock { looks in
            guard looks < Self.mostLooks else { return false }
            looks += 1
            return true
        }
        guard isFree else {
            throw Refusal(status: 503, reason: "many are looking at the page", retryAfter: 1)
        }
        defer { looks.withLock { $0 -= 1 } }
        return try look(head, at: SystemClock().wall().milliseconds)
    }

    private func logIn(_ head: RequestHead, _ body: Spool, _ client: String) throws -> HTTPAnswer {
        let clock = ContinuousClock()
        if let seconds = attempts.withLock({ $0.wait(client, at: clock.now) }) {
            let wait = "Too many wrong tokens: try again in \(seconds) s."
            var answer = HTTPAnswer(429, page: .logIn(wrong: wait))
            answer.headers.append(("Retry-After", "\(seconds)"))
            return answer
        }
        // Counted beforehand: attempts at the same time are attempts, too.
        attempts.withLock { $0.failed(client, at: clock.now) }
        let token = try body.withView { FormField.read("token", $0) } ?? ""
        let given = GivenSecret(text: trimmed(token))
        guard let session = try viewers.logIn(given, at: Date()) else {
            return HTTPAnswer(403, page: .logIn(wrong: "This token is not known."))
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

    // MARK: Looks

    private func look(_ head: RequestHead, at now: Int64) throws -> HTTPAnswer {
        if head.path == "/" { return HTTPAnswer(page: try overview(at: now)) }
        let parts = head.path.split(separator: "/").map(String.init)
        guard parts.count >= 2, isName(parts[1]) else { throw Self.nothing }
        if parts.count == 2 {
            return HTTPAnswer(page: try device(parts[1], before: (.max, ""), at: now))
        }
        if let day = Day(parts[2]), try isKnown(parts[1]) {
            if parts.count == 3 {
                return HTTPAnswer(page: try self.day(day, of: parts[1], at: now))
            }
            if parts.count == 4 { return try gpx(parts[3], of: parts[1], on: day) }
            guard parts.count == 5, isName(parts[3]) else { throw Self.nothing }
            return try sound(parts[3], parts[4], of: parts[1], on: day, head, at: now)
        }
        guard parts.count == 5, parts[2] == "events", let time = Int64(parts[3]), isName(parts[4])
        else { throw Self.nothing }
        return HTTPAnswer(page: try device(parts[1], before: (time, parts[4]), at: now))
    }

    private static var nothing: Refusal { Refusal(status: 404, reason: "no such page") }

    private func overview(at now: Int64) throws -> HTML {
        let (reader, note) = openIndex()
        let facts = try reader?.facts(at: now) ?? [:]
        let contacts = try Contacts.read(directory: directory)
        let tokens = try enrolments.devices()
        let devices = Set(contacts.keys).union(tokens.keys).map {
            view($0, contacts[$0], tokens[$0], facts[$0], at: now)
        }
        return OverviewPage(devices: devices.sorted(by: DeviceView.isBefore), now: now, note: note)
            .html()
    }

    private func device(_ id: String, before place: (time: Int64, id: String), at now: Int64) throws
        -> HTML
    {
        let contact = try Contacts.read(directory: directory, device: id)
        let token = try enrolments.devices()[id]
        guard contact != nil || token != nil else { throw Self.nothing }
        let (reader, note) = openIndex()
        let facts = try reader?.facts(of: id, at: now)[id]
        let most = DevicePage.eventsOnAPage + 1
        return DevicePage(
            device: view(id, contact, token, facts, at: now),
            streams: try reader?.streams(of: id) ?? [:],
            days: try reader?.days(of: id) ?? [],
            events: try reader?.events(of: id, before: place, most: most) ?? [],
            isFirst: place.time == .max,
            now: now,
            note: note
        ).html()
    }

    private func isKnown(_ id: String) throws -> Bool {
        try Contacts.read(directory: directory, device: id) != nil
    }

    private func day(_ day: Day, of id: String, at now: Int64) throws -> HTML {
        let (reader, note) = openIndex()
        let days = try reader?.days(of: id).map(\.name) ?? []
        let slots = try reader?.slots(of: id, on: day) ?? [:]
        let losses = try LossSpan.spans(reader?.losses(of: id, around: day) ?? [], now: now)
        let facts = try reader?.facts(of: id, at: now)[id]
        var tracks: [String: Track] = [:]
        var sounds: [String: SoundDay] = [:]
        for (stream, latest) in facts?.latest ?? [:] where slots[stream] != nil {
            if FlatRecord(latest.line).text("audio_file") != nil {
                sounds[stream] = try SoundDay(path(stream, day, id))
            }
            guard Vitals([stream: latest]).place != nil else { continue }
            let track = try Track(path(stream, day, id))
            if track.fixes > 0 { tracks[stream] = track }
        }
        return DayPage(
            device: id,
            day: day,
            before: days.first { $0 < day.name },
            after: days.last { $0 > day.name },
            timeline: Timeline(day: day, streams: slots, losses: losses, now: now),
            tracks: tracks,
            sounds: sounds,
            now: now,
            note: note
        ).html()
    }

    /// The archive's file of a stream's day; names are plain.
    private func path(_ stream: String, _ day: Day, _ id: String) -> String {
        "\(directory)/stream=\(stream)/date=\(day.name)/device=\(id)/records.ndjson"
    }

    /// What can be downloaded of a day: `STREAM.gpx`.
    private func gpx(_ name: String, of id: String, on day: Day) throws -> HTTPAnswer {
        guard isName(name), name.hasSuffix(".gpx") else { throw Self.nothing }
        let track = try Track(path(String(name.dropLast(4)), day, id))
        guard track.fixes > 0 else { throw Self.nothing }
        var answer = HTTPAnswer(
            200,
            type: "application/gpx+xml",
            track.gpx(name: "\(id) \(day.name)")
        )
        answer.headers += [
            ("Content-Disposition", "attachment; filename=\"\(id)-\(day.name).gpx\""),
            ("Cache-Control", "no-store"),
        ]
        return answer
    }

    /// An hour of a stream's sound (`07`), or a file of it.
    private func sound(
        _ stream: String,
        _ name: String,
        of id: String,
        on day: Day,
        _ head: RequestHead,
        at now: Int64
    ) throws -> HTTPAnswer {
        let records = path(stream, day, id)
        if name.utf8.count == 2, let hour = Int(name), (0..<24).contains(hour) {
            let chunks = try SoundDay(records).chunks(in: hour, of: day)
            guard !chunks.isEmpty else { throw Self.nothing }
            let page = SoundPage(
                device: id,
                day: day,
                stream: stream,
                hour: hour,
                chunks: chunks,
                now: now
            )
            return HTTPAnswer(page: page.html())
        }
        guard SoundChunk.isFile(name) else { throw Self.nothing }
        let folder = records.dropLast("records.ndjson".utf8.count)
        return try HTTPAnswer(soundFile: folder + name, head.fields[.range])
    }

    private func view(
        _ id: String,
        _ contact: Contact?,
        _ token: DeviceToken?,
        _ facts: DeviceFacts?,
        at now: Int64
    ) -> DeviceView {
        DeviceView(
            id,
            contact: contact,
            token: token,
            facts: facts ?? DeviceFacts(),
            listening: listening,
            at: now
        )
    }

    /// The index, and what a viewer must know of it: a page without it is better than none.
    private func openIndex() -> (FleetReader?, String?) {
        do {
            if let reader = try FleetReader(directory: directory) {
                let note = "Records are still being read: figures may be too low."
                return (reader, follower.isBehind ? note : nil)
            }
            return (nil, "There is no index yet: only what the archive itself knows is shown.")
        } catch {
            return (nil, "The index cannot be read: only what the archive itself knows is shown.")
        }
    }
}

extension RequestHead {
    /// Throws a Refusal for any other method; where GET is taken, HEAD is, too.
    func expect(_ wanted: String) throws {
        guard method != wanted, !(wanted == "GET" && method == "HEAD") else { return }
        throw Refusal(status: 405, reason: "use \(wanted)", allow: wanted)
    }
}
