// Records that the server already has although they are sent for the first time.
import Foundation
import Host
import Queue
import Records
import Support
import Testing
import Upload

@Suite struct DuplicateTests {
    private static let known = Behaviour.answer(
        status: 200,
        body: #"{"accepted": 500, "rejected": 0, "duplicates": 2}"#
    )

    private func reported(_ fixture: UploadFixture) throws -> [String] {
        try eventDetails(fixture.queue, .unexpectedDuplicates)
    }

    @Test func firstTryDuplicate_isReportedOncePerSync() throws {
        let fixture = try UploadFixture(maxBatchBytes: 16 << 10) { _ in Self.known }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        let key = try SentBatch(try #require(fixture.server.requests.first)).key
        let batch = key.filter { $0 != "\"" }
        #expect(
            try reported(fixture) == [
                #"{"stream":"location","records":3,"duplicates":2,"batch_id":"\#(batch)"}"#
            ]
        )
        // Many batches of one sync are one event; the event itself, also a duplicate, is reported
        // once.
        fixture.add(500)
        _ = try fixture.sync()
        #expect(try reported(fixture).filter { $0.contains("location") }.count == 2)
        for _ in 0..<5 { _ = try fixture.sync() }
        #expect(try reported(fixture).count == 3)
    }

    @Test(arguments: [
        Behaviour.hangUp, .answer(status: 503, body: ""), .answer(status: 409, body: ""),
        .answer(status: 415, body: ""),
    ])
    func retry_mayBeADuplicate(fault: Behaviour) throws {
        let isFaulty = Locked(true)
        let fixture = try UploadFixture { _ in
            let wasFaulty = isFaulty.update { faulty -> Bool in
                defer { faulty = false }
                return faulty
            }
            return wasFaulty ? fault : Self.known
        }
        defer { fixture.finish() }
        fixture.add(3)
        _ = try fixture.sync()
        _ = try fixture.sync()
        #expect(fixture.figures?.uploaded == 3)
        #expect(try reported(fixture).isEmpty)
    }

    @Test func halvesAndWhatAPersonSendsAgain_mayBeDuplicates() throws {
        let isRefusing = Locked(true)
        let fixture = try UploadFixture(change: { $0.upload.maxAttempts = 1 }) { request in
            let batch = try? SentBatch(request)
            if batch.map({ $0.last > $0.first }) ?? false { return .answer(status: 422, body: "") }
            return isRefusing.value && batch?.first == 1
                ? .answer(status: 422, body: "") : Self.known
        }
        defer { fixture.finish() }
        fixture.add(2)
        _ = try fixture.sync()
        let set = try #require(try fixture.queue.perform { try $0.quarantined() }.first)
        isRefusing.update { $0 = false }
        _ = try fixture.queue.perform { try $0.requeue(set) }
        _ = try fixture.sync()
        #expect(fixture.figures?.uploaded == 2)
        #expect(try reported(fixture).filter { $0.contains("location") }.isEmpty)
    }

    /// libcurl repeats a request if a reused connection was closed: the server may have had the
    /// first.
    @Test func requestThatLibcurlSentTwice_mayBeADuplicate() throws {
        let count = Locked(0)
        let fixture = try UploadFixture { _ in
            let number = count.update { count -> Int in
                count += 1
                return count
            }
            return number == 1 ? .ok : number == 2 ? .hangUp : Self.known
        }
        defer { fixture.finish() }
        fixture.add(1)
        #expect(try fixture.sync())
        fixture.add(1)
        #expect(try fixture.sync())
        #expect(fixture.server.requests.count == 3)
        #expect(try reported(fixture).isEmpty)
    }
}
