// Records that a server refuses: found in few requests and quarantined with its message, alone.
import Foundation
import Host
import HTTP
import Queue
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct RefusalTests {
    /// Returns whether a request has the fix that `addFixes` gave this number.
    private static func has(_ number: Int, _ request: Request) -> Bool {
        let text = String(decoding: (try? gunzip(request.body)) ?? Data(), as: UTF8.self)
        return text.contains(String(format: "\"longitude\":%.7f,", Double(number) / 1e6))
    }

    private func refused(_ fixture: UploadFixture) throws -> [Batch] {
        try fixture.queue.perform { try $0.quarantined() }
    }

    /// Syncs until a record that was refused once has had all its verdicts.
    private func syncToTheEnd(_ fixture: UploadFixture) throws {
        for _ in 2...5 { _ = try fixture.sync() }
    }

    private func events(_ fixture: UploadFixture, _ kind: EventKind) throws -> [String] {
        try eventDetails(fixture.queue, kind)
    }

    @Test(arguments: [
        Behaviour.answer(status: 422, body: "bad longitude"),
        .answer(status: 400, body: "bad longitude"),
        .answer(status: 200, body: #"{"accepted": 9999, "rejected": 1}"#),
    ])
    func poisonRecord_isFoundInTwoRequestsPerHalving(refusal: Behaviour) throws {
        let fixture = try UploadFixture { Self.has(5000, $0) ? refusal : .ok }
        defer { fixture.finish() }
        fixture.add(10_000)
        #expect(try fixture.result() == SyncResult(left: 1))
        // 9000 records in one batch after the newest 1000: 14 halvings, both halves sent, and three
        // more.
        let locations = try fixture.server.requests.map(SentBatch.init).filter {
            $0.stream == "places"
        }
        #expect(locations.count <= 2 * 14 + 3)
        #expect(locations.count > 14)
        // Nothing else was sent again after the server had accepted it.
        let taken = locations.filter { !($0.first...$0.last).contains(5001) }
        #expect(taken.reduce(0) { $0 + $1.last - $1.first + 1 } == 9999)
        // The rest is there; the record itself has four more verdicts, each in a separate sync.
        for number in 1...3 {
            #expect(try fixture.result() == SyncResult(left: 1))
            #expect(fixture.server.requests.count == locations.count + number)
        }
        #expect(try refused(fixture).isEmpty)
        #expect(try fixture.result() == SyncResult(left: 0, quarantined: 1))
        let figures = try #require(fixture.figures)
        #expect(figures.uploaded == 9999)
        #expect(figures.quarantined == 1)
        #expect(figures.pending == 0)
        #expect(figures.accepted == 10_000)
        #expect(try refused(fixture).map(\.first) == [5001])
        #expect(try events(fixture, .quarantined).count == 1)
        #expect(try fixture.result() == SyncResult(left: 0))
    }

    @Test func twoPoisons_areBothFound() throws {
        let fixture = try UploadFixture {
            Self.has(3, $0) || Self.has(4, $0) ? .answer(status: 422, body: "no") : .ok
        }
        defer { fixture.finish() }
        fixture.add(64)
        #expect(try !fixture.sync())
        #expect(fixture.figures?.uploaded == 62)
        try syncToTheEnd(fixture)
        #expect(try refused(fixture).map(\.first).sorted() == [4, 5])
        // Two of one stream in one sync are one event.
        let events = try events(fixture, .quarantined)
        #expect(events.count == 1)
        #expect(events.first?.contains("\"records\":2") == true)
        #expect(events.first?.contains("\"code\":\"E003\"") == true)
    }

    /// More of them than may be refused in a row: they block nothing that the server accepts.
    @Test func scatteredPoisons_holdNothingUp() throws {
        let poison = (0..<25).map { $0 * 40 + 7 }
        let fixture = try UploadFixture { request in
            guard let batch = try? SentBatch(request), batch.stream == "places" else { return .ok }
            return poison.contains { (batch.first...batch.last).contains($0) }
                ? .answer(status: 422, body: "no") : .ok
        }
        defer { fixture.finish() }
        fixture.add(1000)
        #expect(try fixture.result() == SyncResult(left: 25))
        #expect(fixture.figures?.uploaded == 975)
        // Later records arrive at once, though some of the 25 wait their turn.
        for number in 1...20 {
            fixture.add(10)
            _ = try fixture.sync()
            let uploaded = try #require(fixture.figures?.uploaded)
            #expect(uploaded == 975 + 10 * number)
        }
        #expect(try refused(fixture).map(\.first).sorted() == poison.map { Int64($0) })
        #expect(try fixture.sync())
    }

    @Test func tooLarge_isHalvedDownToTheOneThatStaysTooLarge() throws {
        let fixture = try UploadFixture {
            Self.has(42, $0) ? .answer(status: 413, body: "over 1 kB") : .ok
        }
        defer { fixture.finish() }
        fixture.add(100)
        #expect(try fixture.result() == SyncResult(left: 0, quarantined: 1))
        #expect(fixture.figures?.uploaded == 99)
        let refused = try refused(fixture)
        #expect(refused.map(\.first) == [43])
        #expect(refused.map(\.last) == [43])
        #expect(refused.first?.error == "HTTP 413: over 1 kB")
        #expect(fixture.board.state.value?.phase == .idle)
    }

    /// Issue 10: 2,000 sightings made 4,000 requests, 2,000 quarantined records and as many events,
    /// which were refused too.
    @Test(arguments: [400, 413])
    func refusingServer_getsFewRequests_andCausesNoEvents(status: Int) throws {
        let fixture = try UploadFixture { _ in .answer(status: status, body: "no") }
        defer { fixture.finish() }
        fixture.addSightings(2000)
        fixture.add(300)
        fixture.addAudio(chunks: 20, frames: 160)
        fixture.queue.accept(Event(.started, source: "test", stamp: SystemClock().stamp()))
        var quarantined: [Int] = []
        for number in 1...24 {
            let before = fixture.server.requests.count
            let result = try fixture.result()
            #expect(!result.isDone)
            #expect(fixture.server.requests.count - before <= 40, "sync \(number)")
            quarantined.append(result.quarantined)
            // At most one event per stream and sync.
            #expect(try events(fixture, .quarantined).count <= 3 * number)
        }
        #expect(try events(fixture, .quarantined).allSatisfy { !$0.contains("events") })
        let figures = try fixture.queue.flushed().statistics()
        #expect(figures.reduce(0) { $0 + $1.quarantined } == quarantined.reduce(0, +))
        #expect(figures.allSatisfy { $0.uploaded == 0 })
        if status == 413 {
            #expect(quarantined.allSatisfy { $0 <= 40 })
        } else {
            #expect(quarantined.prefix(4).allSatisfy { $0 == 0 })
            // Each stream gets its turn.
            let streams = figures.filter { $0.quarantined > 0 }.map(\.stream)
            #expect(Set(streams) == [.beacons, .location, .audio, .events])
        }
    }

    @Test func oneStreamRefused_holdsNoOtherUp() throws {
        let fixture = try UploadFixture { request in
            (try? SentBatch(request).stream) == "audio" ? .ok : .answer(status: 422, body: "no")
        }
        defer { fixture.finish() }
        fixture.addSightings(2000)
        fixture.add(2000)
        fixture.queue.accept(Event(.started, source: "test", stamp: SystemClock().stamp()))
        fixture.addAudio(chunks: 20, frames: 160)
        _ = try fixture.sync()
        let audio = try fixture.queue.flushed().statistics().first { $0.stream == .audio }
        #expect(audio?.uploaded == 20)
    }

    @Test func recordThatIsTakenAfterAll_isNotQuarantined() throws {
        let isRefusing = Locked(true)
        let fixture = try UploadFixture { _ in
            isRefusing.value ? .answer(status: 422, body: "no") : .ok
        }
        defer { fixture.finish() }
        fixture.add(30)
        for _ in 1...4 { #expect(try !fixture.sync()) }
        isRefusing.update { $0 = false }
        #expect(try fixture.result() == SyncResult(left: 0))
        #expect(fixture.figures?.uploaded == 30)
        #expect(try refused(fixture).isEmpty)
    }

    @Test func maxAttempts_isTheNumberOfSyncs() throws {
        let fixture = try UploadFixture(change: { $0.upload.maxAttempts = 2 }) { _ in
            .answer(status: 422, body: "no")
        }
        defer { fixture.finish() }
        fixture.add(1)
        #expect(try fixture.result() == SyncResult(left: 1))
        #expect(try fixture.result() == SyncResult(left: 0, quarantined: 1))
        #expect(fixture.server.requests.count == 2)
    }

    @Test func serversWords_areShortAndHarmless() throws {
        let words =
            "bad\r\n\u{1B}[31mred\u{7F}\u{9B}2J \u{202E}turned\u{0} caf\u{E9} "
            + String(repeating: "x", count: 5000)
        let fixture = try UploadFixture(change: { $0.upload.maxAttempts = 1 }) { _ in
            .answer(status: 422, body: words)
        }
        defer { fixture.finish() }
        fixture.add(1)
        _ = try fixture.sync()
        let error = try #require(try refused(fixture).first?.error)
        #expect(error.hasPrefix("HTTP 422: bad [31mred2J turned caf\u{E9} xxx"))
        #expect(error.count <= 220)
        let scalars = error.unicodeScalars
        #expect(scalars.allSatisfy { $0.value >= 32 && !(0x7F...0x9F).contains($0.value) })
        #expect(!scalars.contains("\u{202E}"))
    }

    @Test func brokenText_isStillWords() {
        let answer = Answer(status: 422, body: [0xFF, 0xFE, 0x41, 0xC3])
        guard case .refused(let words) = Verdict(answer) else {
            Issue.record("not refused")
            return
        }
        #expect(words == "HTTP 422: \u{FFFD}\u{FFFD}A\u{FFFD}")
    }

    @Test func portalsContentType_isHarmlessInTheMessage() {
        let answer = Answer(
            status: 200,
            contentType: "text/html\u{1B}]0;x" + String(repeating: "y", count: 500),
            body: Array("<html>".utf8)
        )
        guard case .retry(let failure, _) = Verdict(answer) else {
            Issue.record("not retried")
            return
        }
        #expect(!failure.message.contains("\u{1B}"))
        #expect(failure.message.count < 200)
    }
}
