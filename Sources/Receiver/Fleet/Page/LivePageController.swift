// Which page is made anew when, and who gets it.
import Host

/// A page that is kept up to date where it is open.
enum LivePage: Hashable {
    case overview
    case device(String)

    /// Nil for a path that is none of theirs.
    init?(path: String) {
        let parts = path.split(separator: "/").map(String.init)
        if path == "/" {
            self = .overview
        } else if parts.count == 2, parts[0] == "device", isName(parts[1]) {
            self = .device(parts[1])
        } else {
            return nil
        }
    }
}

/// A browser that has a page open.
struct LiveViewer: Sendable {
    let page: LivePage
    let session: GivenSecret
    let stream: AnswerStream
    /// Of what it got last; 0: nothing yet.
    fileprivate var number = 0
    fileprivate var written = BootInstant(nanoseconds: 0)

    init(page: LivePage, session: GivenSecret, stream: AnswerStream) {
        (self.page, self.session, self.stream) = (page, session, stream)
    }
}

/// Used by one thread.
///
/// A page is made once for all who have it open, and forgotten when nobody has.
struct LivePageController {
    private struct Made {
        var event: [UInt8]
        var number: Int
        var at: BootInstant
        /// How often what it shows had changed then.
        var changes: Int
        /// Not made anew before so much time is over.
        var pause: Duration
    }

    /// A page says how long ago something was: it is made anew after that if nothing has changed, too.
    private static let longest = Duration.seconds(60)
    private static let shortest = Duration.seconds(2)
    /// Bytes a second that a viewer gets: a fleet of a thousand, 1 MB, comes every 50 s.
    private static let rate = 20_000
    /// A line that means nothing goes to whoever got nothing for so long: proxies end what is silent for a minute.
    private static let beat = Duration.seconds(15)

    private let mayLook: (GivenSecret) -> Bool
    /// A page as HTML.
    private let make: (LivePage) throws -> [UInt8]
    private(set) var viewers: [LiveViewer] = []
    private var pages: [LivePage: Made] = [:]

    init(mayLook: @escaping (GivenSecret) -> Bool, make: @escaping (LivePage) throws -> [UInt8]) {
        (self.mayLook, self.make) = (mayLook, make)
    }

    /// `changes`: how often what the pages show has changed.
    mutating func round(_ new: [LiveViewer], changes: Int, at now: BootInstant) {
        viewers += new
        for viewer in viewers where viewer.stream.isOver || !mayLook(viewer.session) {
            viewer.stream.end()
        }
        viewers.removeAll { $0.stream.isOver }
        let open = Set(viewers.map(\.page))
        pages = pages.filter { open.contains($0.key) }
        for page in open { renew(page, changes, now) }
        for index in viewers.indices { serve(&viewers[index], now) }
    }

    private mutating func renew(_ page: LivePage, _ changes: Int, _ now: BootInstant) {
        let old = pages[page]
        if let old {
            let isOld = old.changes != changes || now - old.at >= Self.longest
            let isAwaited = viewers.contains { $0.page == page && $0.number == 0 }
            guard isOld || isAwaited, now - old.at >= old.pause else { return }
        }
        guard let event = try? Self.event(make(page)) else {
            // The page itself says what is wrong, when it is asked for.
            for viewer in viewers where viewer.page == page { viewer.stream.end() }
            return
        }
        pages[page] = Made(
            event: event,
            number: (old?.number ?? 0) + 1,
            at: now,
            changes: changes,
            pause: max(Self.shortest, .seconds(event.count / Self.rate))
        )
    }

    private func serve(_ viewer: inout LiveViewer, _ now: BootInstant) {
        if let made = pages[viewer.page], viewer.number != made.number {
            viewer.stream.send(made.event)
            (viewer.number, viewer.written) = (made.number, now)
        } else if now - viewer.written >= Self.beat, viewer.stream.isIdle {
            viewer.stream.send(Array(": \n\n".utf8))
            viewer.written = now
        }
    }

    /// A server-sent event (HTML Standard, section 9.2.6).
    private static func event(_ page: [UInt8]) -> [UInt8] {
        let lines = page.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return Array(lines.map { Array("data: ".utf8) + $0 + [10] }.joined()) + [10]
    }
}
