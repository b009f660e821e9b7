// Live pages, and clients that misuse them.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct LiveTests {
    private let receiver: ReceiverProcess
    private let browser: PageClient
    /// The chunk that ends an answer (RFC 9112, section 7.1).
    private static let end = "\r\n0\r\n\r\n"
    private static let event = "data: changed\n\n"
    private static let maximum = 16

    init() throws {
        receiver = try ReceiverProcess()
        browser = try PageClient(receiver, viewer: "anna")
    }

    /// Opens as many pages as allowed; none has anything to read yet.
    private func full(_ page: String = "/", window: Int32 = 0) throws -> [RawClient] {
        try (0..<Self.maximum).map {
            try browser.live(page, from: "127.0.0.\(2 + $0 / 8)", window: window)
        }
    }

    @Test func page_comesAnew_whenWhatItShowsHasChanged() throws {
        #expect(try receiver.send(device: "d1") == 200)
        let (overview, device) = (try browser.live(), try browser.live("/device/d1"))
        for client in [overview, device] {
            let answer = try #require(client.answer())
            #expect(answer.status == 200)
            #expect(answer.header.contains("Content-Type: text/event-stream"))
            #expect(client.hears("retry: 5000\n\n\(Self.event)"))
        }
        // The index may still have been reading the first batch.
        _ = try browser.page("/device/d1", with: "places")
        #expect(try receiver.send(device: "d2") == 200)
        for client in [overview, device] { #expect(client.hears(Self.event)) }
        #expect(try browser.get("/").body.contains(#"href="/device/d2""#))
        let lost = #","kind":"source_lost","source":"audio","detail":{}"#
        #expect(try receiver.send(padding: lost, time: RawRequest.time()) == 200)
        for client in [overview, device] { #expect(client.hears(Self.event)) }
        #expect(try browser.get("/device/d1").body.contains("audio has been lost since"))
        // Ended properly, and the connection stays usable.
        #expect(try browser.request("POST", "/logout").status == 303)
        for client in [overview, device] {
            #expect(client.hears(Self.end))
            client.send(RawRequest.health)
            #expect(client.answer()?.status == 200)
        }
    }

    @Test func whoMayNotLook_getsNothing() throws {
        let stranger = PageClient(receiver)
        #expect(try stranger.live().answer()?.status == 401)
        let without = try ReceiverProcess()
        #expect(try PageClient(without).live().answer()?.status == 404)
        for page in ["/none", "/device/", "/device/a/2026-11-21", "/device/..%2fx", "//"] {
            #expect(try browser.live(page).answer()?.status == 404, "\(page)")
        }
        #expect(try browser.live("/", "POST").answer()?.status == 405)
        let head = try browser.live("/", "HEAD")
        #expect(head.answer()?.status == 200)
        head.send(RawRequest.health)
        #expect(head.answer()?.status == 200)
        // Without chunks, the end of the connection is the end of the answer.
        let old = try browser.live(version: "HTTP/1.0")
        #expect(old.hears("\r\n\r\nretry: 5000\n\n\(Self.event)"))
        #expect(try receiver.command("viewers", "drop", "anna").status == 0)
        while old.hears("\n") {}
        #expect(old.isAtEnd())
    }

    @Test func manyViewers_leaveRoomForGateways_andStopCleanly() throws {
        let clients = try (0..<64).map { try browser.live(from: "127.0.0.\(2 + $0 / 16)") }
        let live = try clients.filter { client in
            let answer = try #require(client.answer())
            #expect(answer.status == 200 || answer.header.contains("Retry-After: 60"))
            return answer.status == 200
        }
        #expect(live.count == Self.maximum)
        try receiver.expectService()
        #expect(try receiver.send(device: "late-comer") == 200)
        for client in live {
            for _ in 0..<2 { #expect(client.hears(Self.event)) }
        }
        #expect(receiver.terminate() == 0)
        for client in live { #expect(client.hears(Self.end)) }
    }

    /// More than an address may have, and than the server has.
    @Test func viewersThatAreGone_leaveNoConnectionBehind() throws {
        for _ in 0..<70 {
            try waitUntil("a live page") { try browser.live().answer()?.status == 200 }
        }
        try receiver.expectService()
    }

    @Test func viewersThatAreGone_makeRoom() throws {
        var clients = try full()
        for client in clients { #expect(client.answer()?.status == 200) }
        #expect(try browser.live().answer()?.status == 503)
        // Half of them only signal that they send no more.
        for client in clients.prefix(8) { client.finishSending() }
        clients.removeLast(8)
        let next = try (0..<Self.maximum).map { _ in
            var client: RawClient?
            try waitUntil("a place") {
                client = try browser.live(from: "127.0.0.9")
                return client?.answer()?.status == 200
            }
            return client
        }
        #expect(next.count == Self.maximum)
    }

    /// Makes a page of `d1` with 2 MB: a quote is five times as long in HTML.
    private func makeALongPage() throws {
        let text = String(repeating: "'", count: 290)
        let members = (0..<13).map { #""m\#($0)":"\#(text)""# }.joined(separator: ",")
        let detail = #","kind":"gap","source":"s","detail":{\#(members)}"#
        let ids = (0..<100).map { "e\($0)" }
        #expect(try receiver.send(ids: ids, padding: detail) == 200)
        #expect(try browser.page("/device/d1", with: "&#39;").utf8.count > 1_500_000)
    }

    /// All allowed connections, each with the most expensive request.
    @Test func uploads_useBoundedMemory_besideStalledViewers() throws {
        try makeALongPage()
        let clients = try full("/device/d1", window: 4096)
        try waitUntil("all places taken") { try browser.live().answer()?.status == 503 }
        let readers = try (0..<Self.maximum).map {
            try browser.open("/device/d1", from: "127.0.0.\(4 + $0 / 8)", window: 4096)
        }
        #expect(try receiver.uploadsOf8MiB(47) == Array(repeating: 200, count: 47))
        let bomb = Array(gzip(Data(repeating: UInt8(ascii: "["), count: 60 << 20)))
        let head = RawRequest.head(length: bomb.count, encoding: "gzip")
        #expect(try receiver.request(head, bomb).status == 422)
        try receiver.expectService()
        // They were connected all the time.
        #expect((clients + readers).allSatisfy { $0.hasNews() })
    }
}
