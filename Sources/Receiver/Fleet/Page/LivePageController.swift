// Decides when live pages are rendered again, and sends them to their viewers.
import Host

/// A page that is kept up to date while it is open.
enum LivePage: Hashable {
    case overview
    case device(String)

    /// Nil if the path is not that of a live page.
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
    /// The number of the version it got last; 0 before the first.
    fileprivate var number = 0
    fileprivate var written = BootInstant(nanoseconds: 0)

    init(page: LivePage, session: GivenSecret, stream: AnswerStream) {
        (self.page, self.session, self.stream) = (page, session, stream)
    }
}

/// Renders live pages; used by one thread.
///
/// A page is rendered once for all its viewers, and dropped when the last one leaves.
struct LivePageController {
    private struct Made {
        var event: [UInt8]
        var number: Int
        var at: BootInstant
        /// The change count when it was rendered.
        var changes: Int
        /// The least time until it is rendered again.
        var pause: Duration
    }

    /// The longest time until a page is rendered again even without changes, because it shows ages.
    private static let longest = Duration.seconds(60)
    private static let shortest = Duration.seconds(2)
    /// Bytes per second for a viewer: a fleet of a thousand devices, 1 MB, is sent every 50 s.
    private static let rate = 20_000
    /// The interval of heartbeat comments: proxies close connections that are silent for a minute.
    private static let beat = Duration.seconds(15)

    private let mayLook: (GivenSecret) -> Bool
    /// Renders a page as HTML.
    private let make: (LivePage) throws -> [UInt8]
    private(set) var viewers: [LiveViewer] = []
    private var pages: [LivePage: Made] = [:]

    init(mayLook: @escaping (GivenSecret) -> Bool, make: @escaping (LivePage) throws -> [UInt8]) {
        (self.mayLook, self.make) = (mayLook, make)
    }

    /// Updates all viewers; `changes`: the change count of the pages' data.
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
            // The client then requests the page itself, whose answer has the error.
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

    /// Encodes a server-sent event (HTML Standard, section 9.2.6).
    private static func event(_ page: [UInt8]) -> [UInt8] {
        let lines = page.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return Array(lines.map { Array("data: ".utf8) + $0 + [10] }.joined()) + [10]
    }
}
