// `Retry-After`, and how failures of one sync add up.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct RetryAfterTests {
    /// Up to five minutes more than asked for, so that a fleet does not return together.
    private func expect(_ wait: Duration, _ asked: Duration) {
        #expect(wait >= asked)
        #expect(wait <= asked + .seconds(300))
    }

    private func wait(_ headers: [String], status: Int = 503) throws -> Duration {
        let clock = ManualClock(SystemClock().stamp())
        let fixture = try UploadFixture(clock: clock) { _ in
            .answer(status: status, body: "", headers: headers)
        }
        defer { fixture.finish() }
        fixture.add(1)
        #expect(try !fixture.sync())
        let until = try #require(fixture.board.state.value?.notBefore)
        return until - clock.now()
    }

    @Test(arguments: [503, 429, 408, 409, 500])
    func seconds_areHonoured(status: Int) throws {
        expect(try wait(["Retry-After: 120"], status: status), .seconds(120))
    }

    @Test func moreThanAnHour_isAnHour() throws {
        expect(try wait(["Retry-After: 86400"]), .seconds(3600))
        #expect(try wait(["Retry-After: 99999999999999999999"]) <= .seconds(3900))
    }

    @Test func date_isReadByTheServersClock() throws {
        // The device may believe it is 1970; both dates are the server's.
        let headers = [
            "Date: Wed, 21 Oct 2015 07:28:00 GMT", "Retry-After: Wed, 21 Oct 2015 07:30:30 GMT",
        ]
        expect(try wait(headers), .seconds(150))
    }

    @Test func dateWithoutTheServersClock_isReadByOurs() throws {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        let date = format.string(from: Date(timeIntervalSinceNow: 600))
        let wait = try wait(["Retry-After: \(date)"])
        #expect(wait > .seconds(60))
        #expect(wait <= .seconds(900))
    }

    @Test(arguments: [
        [], ["Retry-After: soon"], ["Retry-After: -5"], ["Retry-After:"],
        ["Date: Wed, 21 Oct 2015 07:28:00 GMT", "Retry-After: Wed, 21 Oct 2015 07:00:00 GMT"],
    ])
    func noUsableWait_isTheFirstBackoff(headers: [String]) throws {
        #expect(try wait(headers) <= .seconds(30))
    }

    private func addToThreeStreams(_ fixture: UploadFixture) throws {
        fixture.add(1)
        try fixture.queue.flushed()
        fixture.queue.accept(testSighting(1, at: SystemClock().stamp()))
        fixture.queue.accept(
            Event(.started, source: "test", detail: [], stamp: SystemClock().stamp())
        )
    }

    @Test func askedWait_endsTheSyncForEveryStream() throws {
        let fixture = try UploadFixture { _ in
            .answer(status: 503, body: "", headers: ["Retry-After: 60"])
        }
        defer { fixture.finish() }
        try addToThreeStreams(fixture)
        #expect(try !fixture.sync())
        #expect(fixture.server.requests.count == 1)
    }

    /// A stream that has used up a limit of its own does not stop the others.
    @Test func waitOfOneStream_holdsThatStreamOnly() throws {
        let clock = ManualClock(SystemClock().stamp())
        let isFull = Locked(true)
        let fixture = try UploadFixture(clock: clock) { request in
            guard isFull.value, (try? SentBatch(request))?.stream == "places" else { return .ok }
            return .answer(
                status: 429,
                body: #"{"error":"1000 files are the limit","stream":"places"}"#,
                headers: ["Retry-After: 3600"]
            )
        }
        defer { fixture.finish() }
        try addToThreeStreams(fixture)
        #expect(try fixture.result().left == 1)
        let streams = { try fixture.server.requests.map { try SentBatch($0).stream } }
        #expect(try Set(streams()) == ["places", "beacons", "events"])
        #expect(fixture.board.state.value?.notBefore == nil)
        let error = fixture.board.state.value?.streams[.location]?.lastError
        #expect(error?.failure.message.contains("1000 files are the limit") == true)
        // Later records of the others go at the next tick, and no request is spent on this stream.
        fixture.queue.accept(testSighting(2, at: SystemClock().stamp()))
        try fixture.queue.flushed()
        fixture.tick()
        try waitUntil("the second sighting") { try streams().count { $0 == "beacons" } == 2 }
        isFull.update { $0 = false }
        clock.advance(by: .seconds(3601))
        fixture.tick()
        try waitUntil("the end of the hold") { fixture.figures?.uploaded == 1 }
        #expect(try streams().count { $0 == "places" } == 2)
    }

    @Test func serverError_letsEachStreamTryOnce_andCountsOnce() throws {
        let clock = ManualClock(SystemClock().stamp())
        let fixture = try UploadFixture(clock: clock) { _ in .answer(status: 500, body: "") }
        defer { fixture.finish() }
        try addToThreeStreams(fixture)
        #expect(try !fixture.sync())
        #expect(fixture.server.requests.count == 3)
        // Three streams at one broken server are one failure: the first step, not the third.
        let until = try #require(fixture.board.state.value?.notBefore)
        #expect(until - clock.now() <= .seconds(30))
    }

    @Test func failedNewestRecords_areNotResentInTheSameSync() throws {
        let fixture = try UploadFixture(maxBatchBytes: 200_000) { _ in
            .answer(status: 500, body: "")
        }
        defer { fixture.finish() }
        fixture.add(3000)
        #expect(try !fixture.sync())
        #expect(fixture.server.requests.count == 1)
    }

    @Test func stop_answersWhoeverAskedForASync() throws {
        let fixture = try UploadFixture { _ in .stall }
        fixture.add(1)
        let answers = Locked<[Bool]>([])
        fixture.ask { done in answers.update { $0.append(done) } }
        try waitUntil("the request is under way") { !fixture.server.requests.isEmpty }
        fixture.ask { done in answers.update { $0.append(done) } }
        fixture.finish()
        #expect(answers.value == [false, false])
    }
}
