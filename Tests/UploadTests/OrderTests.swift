import Foundation
import Host
import Queue
import Records
import Support
import Testing
import Upload

/// The order after an outage: newest records of small streams, then the backlog, audio last.
@Suite struct OrderTests {
    /// The parts of a request that show its order.
    private struct Sent: Equatable {
        var stream: String
        var first: Int
        var last: Int
    }

    private func sent(_ fixture: UploadFixture) throws -> [Sent] {
        try fixture.server.requests.map { request in
            let object = try JSONSerialization.jsonObject(with: gunzip(request.body))
            let body = try #require(object as? [String: Any])
            let metadata = try #require(body["batch_metadata"] as? [String: Any])
            return Sent(
                stream: try #require(body["stream_name"] as? String),
                first: try #require(metadata["first_sequence"] as? Int),
                last: try #require(metadata["last_sequence"] as? Int)
            )
        }
    }

    /// Checks that the ranges of a stream cover all its records, each once.
    private func expectEachOnce(_ sent: [Sent], _ stream: String, through newest: Int) {
        let ranges = sent.filter { $0.stream == stream }.sorted { $0.first < $1.first }
        var next = 1
        for range in ranges {
            #expect(range.first == next)
            next = range.last + 1
        }
        #expect(next == newest + 1)
    }

    @Test func backlog_newestOfTheSmallStreamsGoFirst_soundLast() throws {
        let fixture = try UploadFixture(maxBatchBytes: 200_000) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(3000)
        fixture.addSightings(4000)
        fixture.addAudio(chunks: 12)
        #expect(try fixture.sync())
        let sent = try sent(fixture)
        // A small batch each: the newest positions and sightings.
        #expect(sent.first?.stream == "places")
        #expect(sent.first?.last == 3000)
        #expect((sent.first?.first ?? 0) > 1)
        #expect(sent.dropFirst().first?.stream == "beacons")
        #expect(sent.dropFirst().first?.last == 4000)
        // Then the backlog, oldest first.
        let positions = sent.dropFirst(2).filter { $0.stream == "places" }
        #expect(positions.map(\.first) == positions.map(\.first).sorted())
        #expect(positions.first?.first == 1)
        let firstAudio = try #require(sent.firstIndex { $0.stream == "audio" })
        #expect(sent[firstAudio...].allSatisfy { $0.stream == "audio" })
        expectEachOnce(sent, "places", through: 3000)
        expectEachOnce(sent, "beacons", through: 4000)
        expectEachOnce(sent, "audio", through: 12)
    }

    @Test func few_goInOneRequest() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        fixture.add(900)
        #expect(try fixture.sync())
        #expect(try sent(fixture) == [Sent(stream: "places", first: 1, last: 900)])
    }

    @Test func outage_freezesOneBatchPerStream_thenSendsNewest() throws {
        let isDown = Locked(true)
        let fixture = try UploadFixture(maxBatchBytes: 200_000) { _ in
            isDown.value ? .answer(status: 503, body: "") : .ok
        }
        defer { fixture.finish() }
        for round in 0..<5 {
            fixture.add(1500)
            #expect(try !fixture.sync())
            let frozen = try fixture.queue.flushed().nextReady(.location)
            #expect(frozen != nil, "round \(round)")
        }
        let keys = Set(fixture.server.requests.compactMap { $0.headers["idempotency-key"] })
        #expect(keys.count == 1)
        let tries = fixture.server.requests.count
        isDown.update { $0 = false }
        #expect(try fixture.sync())
        let after = Array(try sent(fixture)[tries...])
        #expect(after.dropFirst().first?.last == 7500)
        // It includes the batch that failed, unchanged.
        #expect(
            keys.isSubset(
                of: fixture.server.requests[tries...].compactMap {
                    $0.headers["idempotency-key"]
                }
            )
        )
        expectEachOnce(after, "places", through: 7500)
    }

    @Test func longDrain_newRecordsOfSmallStreamsGoInBetween() throws {
        let clock = ManualClock(SystemClock().stamp())
        let later = Locked<Queue?>(nil)
        let fixture = try UploadFixture(maxBatchBytes: 100_000, clock: clock) { _ in
            // Each request takes a minute of the clock, and a position arrives during it.
            clock.advance(by: .seconds(61))
            if let queue = later.value { addFixes(5, to: queue) }
            return .ok
        }
        defer { fixture.finish() }
        fixture.addAudio(chunks: 20)
        fixture.add(10)
        later.update { $0 = fixture.queue }
        _ = try fixture.sync()
        later.update { $0 = nil }
        let sent = try sent(fixture)
        let places = sent.indices.filter { sent[$0].stream == "places" }
        let sound = sent.indices.filter { sent[$0].stream == "audio" }
        let lastAudio = try #require(sound.last)
        #expect(places.filter { $0 > (sound.first ?? 0) && $0 < lastAudio }.count >= 3)
    }
}
