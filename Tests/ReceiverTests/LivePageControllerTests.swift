// The rendering of live pages, and the updates that each viewer gets.
import Foundation
import Host
import Support
import Testing

@testable import Receiver

@Suite struct LiveDeskTests {
    private let made = Locked([LivePage]())
    private let size = Locked(100)
    private let isWelcome = Locked(true)

    /// A controller with pages of a size, each with its number in it; the page `broken` fails.
    private func desk() -> LivePageController {
        LivePageController(mayLook: { [isWelcome] _ in isWelcome.value }) { [made, size] page in
            if page == .device("broken") { throw Trouble("no") }
            made.update { $0.append(page) }
            return Array("page \(made.value.count)\n".utf8)
                + [UInt8](repeating: 65, count: size.value)
        }
    }

    private func viewer(_ page: LivePage = .overview) -> LiveViewer {
        LiveViewer(
            page: page,
            session: GivenSecret(text: "s"),
            stream: AnswerStream([], first: Array("first\n".utf8))
        )
    }

    private func seconds(_ count: Int64) -> BootInstant {
        BootInstant(nanoseconds: count * 1_000_000_000)
    }

    /// All that the client would have received, without heartbeats; nil when it is over.
    private func taken(_ viewer: LiveViewer) -> String? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1000)
        while let count = block.withUnsafeMutableBytes({ viewer.stream.fill($0) }) {
            guard count > 0 else {
                return String(decoding: bytes.filter { $0 != 65 }, as: UTF8.self)
            }
            bytes += block.prefix(count)
        }
        return nil
    }

    private func event(_ number: Int) -> String { "data: page \(number)\ndata: \n\n" }

    @Test func page_isMadeOnceForAll_andNotOftenerThanItsSizeAllows() throws {
        var desk = desk()
        let (first, second, device) = (viewer(), viewer(), viewer(.device("d1")))
        desk.round([first, second], changes: 0, at: seconds(100))
        #expect(made.value == [.overview])
        for viewer in [first, second] { #expect(taken(viewer) == "first\n" + event(1)) }
        desk.round([device], changes: 0, at: seconds(101))
        #expect(made.value == [.overview, .device("d1")])
        size.update { $0 = 200_000 }
        for (second, count, changes) in [
            (101, 2, 1), (102, 3, 1), (111, 4, 2), (112, 5, 2), (113, 5, 2), (120, 5, 2),
        ] {
            desk.round([], changes: changes, at: seconds(Int64(second)))
            #expect(made.value.count == count, "\(second)")
        }
        // Without a change, once a minute.
        desk.round([], changes: 2, at: seconds(170))
        #expect(made.value.count == 5)
        desk.round([], changes: 2, at: seconds(172))
        #expect(made.value.count == 7)
        // A slow viewer gets only the newest version.
        #expect(taken(device)?.components(separatedBy: "data: page").count == 2)
        #expect(try #require(taken(first)).hasPrefix("data: page"))
    }

    @Test func whoComesLater_getsThePageAtOnce_andANewOneWhenThatMayBe() {
        var desk = desk()
        desk.round([viewer()], changes: 0, at: seconds(100))
        let late = viewer()
        desk.round([late], changes: 0, at: seconds(101))
        #expect(taken(late) == "first\n" + event(1))
        let later = viewer()
        desk.round([later], changes: 0, at: seconds(110))
        #expect(taken(later) == "first\n" + event(2))
        #expect(taken(late) == event(2))
    }

    @Test func viewerWhoGetsNothing_hearsThatThereIsSomebody() {
        var desk = desk()
        let (idle, busy) = (viewer(), viewer())
        desk.round([idle, busy], changes: 0, at: seconds(100))
        _ = taken(idle)
        desk.round([], changes: 0, at: seconds(114))
        #expect(taken(idle) == "")
        desk.round([], changes: 0, at: seconds(115))
        #expect(taken(idle) == ": \n\n")
        // A heartbeat would take the place of a page.
        #expect(taken(busy) == "first\n" + event(1))
        desk.round([], changes: 0, at: seconds(129))
        #expect(taken(idle) == "")
    }

    @Test func whoMayNotLookAnyMore_orCannot_isLetGo_andOthersStay() {
        var desk = desk()
        let (viewer, broken) = (viewer(), viewer(.device("broken")))
        desk.round([viewer, broken], changes: 0, at: seconds(100))
        #expect(taken(broken) == nil)
        #expect(taken(viewer) == "first\n" + event(1))
        desk.round([], changes: 0, at: seconds(101))
        #expect(desk.viewers.count == 1)
        isWelcome.update { $0 = false }
        desk.round([], changes: 0, at: seconds(102))
        #expect(desk.viewers.isEmpty)
        #expect(taken(viewer) == nil)
        #expect(made.value.count == 1)
    }
}
