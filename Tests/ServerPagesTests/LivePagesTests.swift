// The events that each viewer of a live page gets.
import Foundation
import Host
import Support
import Testing

@testable import ServerBase
@testable import ServerPages
@testable import ServerWeb

@Suite struct LivePagesTests {
    private let changes = Locked(0)
    private let isWelcome = Locked(true)
    private let pages: LivePages
    private let start = SystemClock().now()
    private static let event = "data: changed\n\n"

    init() throws {
        pages = try LivePages(changes: { [changes] in changes.value }) { [isWelcome] session in
            isWelcome.value || session.text == "welcome"
        }
    }

    private func open(_ session: String = "s") throws -> AnswerStream {
        try pages.open(GivenSecret(text: session))
    }

    /// All that the client would have received; nil when it is over.
    private func taken(_ stream: AnswerStream) -> String? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1000)
        while let count = block.withUnsafeMutableBytes({ stream.fill($0) }) {
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += block.prefix(count)
        }
        return nil
    }

    @Test func viewerIsNotified_atTheBeginningAndOfEachChange() throws {
        var viewers: [LiveViewer] = []
        let (first, second) = (try open(), try open())
        // A change before the first round is not lost.
        changes.update { $0 = 1 }
        for stream in [first, second] { #expect(taken(stream) == "retry: 5000\n\n" + Self.event) }
        pages.notifyViewers(&viewers, at: start)
        #expect(viewers.count == 2)
        #expect(taken(first) == Self.event)
        pages.notifyViewers(&viewers, at: start + .seconds(1))
        #expect(taken(first) == "")
        // A viewer that reads slowly gets one event for many changes, and none is lost.
        for count in 2..<5 {
            changes.update { $0 = count }
            pages.notifyViewers(&viewers, at: start + .seconds(count))
            #expect(taken(first) == Self.event)
        }
        #expect(taken(second) == Self.event)
        pages.notifyViewers(&viewers, at: start + .seconds(6))
        #expect(taken(second) == Self.event)
        pages.notifyViewers(&viewers, at: start + .seconds(7))
        #expect(taken(second) == "")
    }

    @Test func viewerWhoGetsNothing_hearsThatThereIsSomebody() throws {
        var viewers: [LiveViewer] = []
        let (idle, busy) = (try open(), try open())
        _ = taken(idle)
        pages.notifyViewers(&viewers, at: start + .seconds(14))
        #expect(taken(idle) == "")
        pages.notifyViewers(&viewers, at: start + .seconds(16))
        #expect(taken(idle) == ": \n\n")
        #expect(taken(busy) == "retry: 5000\n\n" + Self.event)
        pages.notifyViewers(&viewers, at: start + .seconds(30))
        #expect(taken(idle) == "")
    }

    @Test func whoMayNotLookAnyMore_isLetGo_andMakesRoom() throws {
        var viewers: [LiveViewer] = []
        let streams = try (0..<LivePages.maximum).map { try open($0 == 0 ? "welcome" : "s") }
        #expect(throws: HTTPError.self) { try open() }
        pages.notifyViewers(&viewers, at: start)
        isWelcome.update { $0 = false }
        changes.update { $0 = 1 }
        for stream in streams { _ = taken(stream) }
        pages.notifyViewers(&viewers, at: start + .seconds(1))
        #expect(viewers.count == 1)
        #expect(taken(streams[0]) == Self.event)
        #expect(streams.dropFirst().allSatisfy { taken($0) == nil })
        for _ in 1..<LivePages.maximum { _ = try open() }
        #expect(throws: HTTPError.self) { try open() }
    }
}
