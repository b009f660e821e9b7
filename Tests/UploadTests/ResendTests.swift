// Resending uploaded records on request, to a server restored from an older backup.
import Foundation
import Host
import Records
import StatusBoard
import Support
import Testing
import Upload

@testable import Queue

@Suite struct ResendTests {
    private static let known = Behaviour.answer(
        status: 200,
        body: #"{"accepted": 0, "rejected": 0, "duplicates": 3}"#
    )

    private func resend(
        _ fixture: UploadFixture,
        _ stream: Records.Stream? = nil,
        since: WallTime = WallTime(milliseconds: 0),
        until: WallTime? = nil
    ) throws -> (batches: Int, records: Int, gone: Int) {
        let range = ResendRange(stream, since: since, until: until)
        return try fixture.queue.perform { try $0.resend(range) }
    }

    private func sent(_ fixture: UploadFixture, _ stream: String = "places") throws -> [SentBatch] {
        try fixture.server.requests.map { try SentBatch($0) }.filter { $0.stream == stream }
    }

    @Test func resentBatches_areUnchanged_andFollowPendingOnes() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        fixture.add(2)
        #expect(try fixture.sync())
        let before = try sent(fixture)
        let bodies = fixture.server.requests.map(\.body)
        let figures = fixture.figures

        let marked = try resend(fixture, .location)
        #expect(marked.batches == 2)
        #expect(marked.records == 5)
        fixture.add(1)
        #expect(try fixture.sync())
        let after = try sent(fixture).dropFirst(before.count)
        // Pending records first, then the same keys and the same bytes.
        #expect(after.map(\.first) == [6, 1, 4])
        #expect(after.dropFirst().map(\.key) == before.map(\.key))
        #expect(fixture.server.requests.suffix(2).map(\.body) == bodies)
        // They are counted once, and only once sent again.
        #expect(fixture.figures?.uploaded == (figures?.uploaded ?? 0) + 1)
        #expect(fixture.figures?.pending == 0)
        let count = fixture.server.requests.count
        #expect(try fixture.sync())
        #expect(fixture.server.requests.count == count)
    }

    /// One sync resends 40 batches at most: the result says what is left for the next ones.
    @Test func remainingResends_areInResultAndStatistics() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        for _ in 0..<45 {
            fixture.add(2)
            #expect(try fixture.sync())
        }
        #expect(try resend(fixture, .location).records == 90)
        func left() -> Int? {
            fixture.queue.statistics().first { $0.stream == .location }?.resending
        }
        #expect(left() == 90)
        #expect(try fixture.result().resending == 10)
        #expect(left() == 10)
        #expect(try fixture.result().resending == nil)
        #expect(left() == 0)
    }

    @Test func duplicates_areExpected_andTheSyncIsDone() throws {
        let isKnown = Locked(false)
        let fixture = try UploadFixture { _ in isKnown.value ? Self.known : .ok }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        isKnown.update { $0 = true }
        _ = try resend(fixture)
        #expect(try fixture.sync())
        #expect(try eventDetails(fixture.queue, .unexpectedDuplicates).isEmpty)
        #expect(fixture.figures?.uploaded == 3)
        #expect(try fixture.queue.nextResend() == nil)
    }

    /// An outage keeps the mark, a refusal clears it: the records stay uploaded, and nothing is
    /// split or quarantined.
    @Test func failureIsRetried_refusalIsReportedOnce() throws {
        let answer = Locked(Behaviour.ok)
        let fixture = try UploadFixture { _ in answer.value }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        _ = try resend(fixture)
        answer.update { $0 = .answer(status: 503, body: "") }
        _ = try fixture.sync()
        #expect(try fixture.queue.nextResend() != nil)
        answer.update { $0 = .answer(status: 422, body: #"{"error": "no"}"#) }
        _ = try fixture.sync()
        #expect(try fixture.queue.nextResend() == nil)
        #expect(fixture.figures?.uploaded == 3)
        #expect(fixture.figures?.quarantined == 0)
        let error = fixture.board.state.value?.streams[.location]?.lastError
        #expect(error?.failure.message.contains("not sent again") == true)
    }

    /// A batch on which the server fails repeatedly does not block others.
    @Test func batchThatFails_holdsUpNoOther() throws {
        let failing = Locked(0)
        let fixture = try UploadFixture { request in
            let first = (try? SentBatch(request))?.first
            return first == failing.value ? .answer(status: 500, body: "") : .ok
        }
        defer { fixture.finish() }
        for _ in 0..<3 {
            fixture.add(2)
            #expect(try fixture.sync())
        }
        failing.update { $0 = 1 }
        _ = try resend(fixture, .location)
        for _ in 0..<4 { _ = try fixture.sync() }
        #expect(try fixture.queue.nextResend()?.first == 1)
        #expect(try fixture.queue.nextResend(after: 1) == nil)
        #expect(Set(try sent(fixture).dropFirst(3).map(\.first)) == [1, 3, 5])
    }

    @Test func portion_endsASync_andTheNextGoesOn() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        fixture.add(100)
        // As many batches as records.
        try fixture.queue.flushed()
        try fixture.queue.perform { writer in
            for number in 1...100 as ClosedRange<Int64> {
                let range = PendingRange(
                    stream: .location,
                    first: number,
                    last: number,
                    clockMap: 0,
                    synced: false
                )
                try writer.uploaded(try #require(try writer.freeze(range, through: number)))
            }
        }
        #expect(try resend(fixture).batches == 100)
        for expected in [40, 80, 100, 100] {
            #expect(try fixture.sync())
            #expect(try sent(fixture).count == expected)
        }
    }
}
