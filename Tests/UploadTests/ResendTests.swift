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
        _ bench: UploadBench,
        _ stream: Records.Stream? = nil,
        since: WallTime = WallTime(milliseconds: 0),
        until: WallTime? = nil
    ) throws -> (batches: Int, records: Int, gone: Int) {
        let range = ResendRange(stream, since: since, until: until)
        return try bench.queue.perform { try $0.resend(range) }
    }

    private func sent(_ bench: UploadBench, _ stream: String = "places") throws -> [SentBatch] {
        try bench.server.requests.map { try SentBatch($0) }.filter { $0.stream == stream }
    }

    @Test func uploadedBatches_goAgainAsTheyWere_afterWhatIsPending() throws {
        let bench = try UploadBench { _ in .ok }
        defer { bench.finish() }
        bench.add(3)
        #expect(try bench.sync())
        bench.add(2)
        #expect(try bench.sync())
        let before = try sent(bench)
        let bodies = bench.server.requests.map(\.body)
        let figures = bench.figures

        let marked = try resend(bench, .location)
        #expect(marked.batches == 2)
        #expect(marked.records == 5)
        bench.add(1)
        #expect(try bench.sync())
        let after = try sent(bench).dropFirst(before.count)
        // Pending records first, then the same keys and the same bytes.
        #expect(after.map(\.first) == [6, 1, 4])
        #expect(after.dropFirst().map(\.key) == before.map(\.key))
        #expect(bench.server.requests.suffix(2).map(\.body) == bodies)
        // They are counted once, and only once sent again.
        #expect(bench.figures?.uploaded == (figures?.uploaded ?? 0) + 1)
        #expect(bench.figures?.pending == 0)
        let count = bench.server.requests.count
        #expect(try bench.sync())
        #expect(bench.server.requests.count == count)
    }

    /// One sync resends 40 batches at most: the result says what is left for the next ones.
    @Test func whatIsLeftToResend_isInTheResult_andInTheStatistics() throws {
        let bench = try UploadBench { _ in .ok }
        defer { bench.finish() }
        for _ in 0..<45 {
            bench.add(2)
            #expect(try bench.sync())
        }
        #expect(try resend(bench, .location).records == 90)
        func left() -> Int? {
            bench.queue.statistics().first { $0.stream == .location }?.resending
        }
        #expect(left() == 90)
        #expect(try bench.result().resending == 10)
        #expect(left() == 10)
        #expect(try bench.result().resending == nil)
        #expect(left() == 0)
    }

    @Test func duplicates_areExpected_andTheSyncIsDone() throws {
        let isKnown = Locked(false)
        let bench = try UploadBench { _ in isKnown.value ? Self.known : .ok }
        defer { bench.finish() }
        bench.add(3)
        #expect(try bench.sync())
        isKnown.update { $0 = true }
        _ = try resend(bench)
        #expect(try bench.sync())
        #expect(try eventDetails(bench.queue, .unexpectedDuplicates).isEmpty)
        #expect(bench.figures?.uploaded == 3)
        #expect(try bench.queue.nextResend() == nil)
    }

    /// An outage keeps the mark, a refusal clears it: the records stay uploaded, and nothing is
    /// split or quarantined.
    @Test func failureIsRetried_refusalIsReportedOnce() throws {
        let answer = Locked(Behaviour.ok)
        let bench = try UploadBench { _ in answer.value }
        defer { bench.finish() }
        bench.add(3)
        #expect(try bench.sync())
        _ = try resend(bench)
        answer.update { $0 = .answer(status: 503, body: "") }
        _ = try bench.sync()
        #expect(try bench.queue.nextResend() != nil)
        answer.update { $0 = .answer(status: 422, body: #"{"error": "no"}"#) }
        _ = try bench.sync()
        #expect(try bench.queue.nextResend() == nil)
        #expect(bench.figures?.uploaded == 3)
        #expect(bench.figures?.quarantined == 0)
        let error = bench.board.state.value?.streams[.location]?.lastError
        #expect(error?.failure.message.contains("not sent again") == true)
    }

    /// A batch on which the server fails repeatedly does not block others.
    @Test func batchThatFails_holdsUpNoOther() throws {
        let failing = Locked(0)
        let bench = try UploadBench { request in
            let first = (try? SentBatch(request))?.first
            return first == failing.value ? .answer(status: 500, body: "") : .ok
        }
        defer { bench.finish() }
        for _ in 0..<3 {
            bench.add(2)
            #expect(try bench.sync())
        }
        failing.update { $0 = 1 }
        _ = try resend(bench, .location)
        for _ in 0..<4 { _ = try bench.sync() }
        #expect(try bench.queue.nextResend()?.first == 1)
        #expect(try bench.queue.nextResend(after: 1) == nil)
        #expect(Set(try sent(bench).dropFirst(3).map(\.first)) == [1, 3, 5])
    }

    @Test func portion_endsASync_andTheNextGoesOn() throws {
        let bench = try UploadBench { _ in .ok }
        defer { bench.finish() }
        bench.add(100)
        // As many batches as records.
        try bench.queue.flushed()
        try bench.queue.perform { writer in
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
        #expect(try resend(bench).batches == 100)
        for expected in [40, 80, 100, 100] {
            #expect(try bench.sync())
            #expect(try sent(bench).count == expected)
        }
    }
}
