// Uploads to a bucket over restarts and changed configurations: objects keep their names.
import Foundation
import Host
import HTTP
import Queue
import Records
import Support
import Testing

@testable import Upload

@Suite struct BucketRestartTests {
    private typealias Fixture = BucketFixture

    /// The store has kept the object, its answer was lost, and the configuration changes before the
    /// next try.
    @Test func objectKeepsItsName_whateverIsConfiguredSince() throws {
        let isLost = Locked(true)
        let server = try FaultyServer { _ in isLost.value ? .hangUp : .stored }
        defer { server.close() }
        let fixture = try Fixture(url: "http://127.0.0.1:\(server.port)/bucket", compression: .gzip)
        defer { fixture.finish() }
        try fixture.add(20, from: "2026-11-21T12:00:00.000Z")
        #expect(try !fixture.sync())
        fixture.end()
        fixture.settings.compression = .zstd
        fixture.settings.streamNames[.location] = "positions"
        try fixture.start()
        isLost.update { $0 = false }
        try fixture.add(5, from: "2026-11-21T13:00:00.000Z")
        #expect(try fixture.sync())
        let requests = server.requests
        #expect(requests.count == 3)
        #expect(requests[0].path == requests[1].path)
        #expect(requests[0].body == requests[1].body)
        let next = requests.last?.path ?? ""
        #expect(next.contains("stream%3Dpositions/") && next.hasSuffix(".ndjson.zst"))
    }

    /// During an outage of weeks the configuration and the device id may change often.
    @Test func objectName_survivesConfigurationChanges() throws {
        let isLost = Locked(true)
        let server = try FaultyServer { _ in isLost.value ? .hangUp : .stored }
        defer { server.close() }
        let fixture = try Fixture(url: "http://127.0.0.1:\(server.port)/bucket", compression: .gzip)
        defer { fixture.finish() }
        try fixture.add(20, from: "2026-11-21T12:00:00.000Z")
        #expect(try !fixture.sync())
        for change in 1...12 {
            fixture.end()
            fixture.settings.streamNames[.location] = "places\(change)"
            fixture.settings.destination.deviceID = "device-\(change)"
            try fixture.start()
            #expect(try !fixture.sync())
        }
        isLost.update { $0 = false }
        #expect(try fixture.sync())
        #expect(Set(server.requests.map(\.path)).count == 1)
    }

    /// The database that replaces a damaged one counts batches from one again.
    @Test func newBatchHasTheNewName_thoughTheDatabaseWasReplaced() throws {
        let server = try FaultyServer { _ in .stored }
        defer { server.close() }
        let fixture = try Fixture(url: "http://127.0.0.1:\(server.port)/bucket", compression: .none)
        defer { fixture.finish() }
        for _ in 1...30 {
            try fixture.add(1, from: "2026-11-21T12:00:00.000Z")
            #expect(try fixture.sync())
        }
        fixture.end()
        fixture.settings.streamNames[.location] = "positions"
        try fixture.start()
        #expect(try fixture.sync())
        let before = fixture.queue.generation
        fixture.queue.reportDamage("a test", generation: before)
        try waitUntil("another database") { fixture.queue.generation > before }
        try fixture.add(1, from: "2026-11-21T13:00:00.000Z")
        try waitUntil("all is sent") { try fixture.sync() }
        let last = server.requests.last {
            String(decoding: $0.body, as: UTF8.self).contains("T13:00:00")
        }
        #expect(last?.path.contains("stream%3Dpositions/") == true, "\(last?.path ?? "none")")
    }

    /// The disk fails at the start after a configuration change: no names are known before there is
    /// a database.
    @Test func objectKeepsItsName_thoughTheDatabaseComesLate() throws {
        let folder = TemporaryFolder("state")
        let state = folder.path + "/state"
        let clock = ManualClock(SystemClock().stamp())
        var settings = QueueSettings(path: state + "/q", bootID: "boot", appVersion: "1")
        settings.isTurnedByHand = true
        settings.clock = clock
        let before = try Queue(settings: settings)
        _ = try ObjectNames(Self.destination(.gzip), before)
        before.accept(Event(.started, source: "gateway", stamp: clock.stamp()))
        try before.flushed()
        let range = try #require(before.pending(.events))
        let frozen = try before.perform { try $0.freeze(range, through: range.last) }
        let batch = try #require(frozen)
        before.close()
        try FileManager.default.moveItem(atPath: state, toPath: state + "-away")
        let after = try Queue(settings: settings)
        defer { after.close() }
        _ = try? ObjectNames(Self.destination(.zstd), after)
        try FileManager.default.moveItem(atPath: state + "-away", toPath: state)
        clock.advance(by: .seconds(60))
        try after.flushed()
        #expect(try ObjectNames(Self.destination(.zstd), after).of(batch).compression == "gzip")
    }

    private static func destination(_ compression: Compression) -> DestinationSettings {
        DestinationSettings(
            transport: TransportSettings(endpoint: "http://127.0.0.1:1/b", userAgent: "t"),
            region: "us-east-1",
            deviceID: "device-1",
            streamNames: [:],
            compression: compression,
            token: { "id:secret" }
        )
    }

    /// A power cut each night does not restart a long batch of audio each morning.
    @Test func soundThatABucketHas_isNotSentAgain_afterARestart() throws {
        let puts = Locked(0)
        let server = try FaultyServer { _ in
            puts.update { $0 += 1 }
            return puts.value == 3 ? .answer(status: 503, body: "") : .stored
        }
        defer { server.close() }
        let bucket = "http://127.0.0.1:\(server.port)/bucket"
        let fixture = try Fixture(url: bucket, maxBatchBytes: 64 << 20)
        defer { fixture.finish() }
        fixture.addAudio(.wav, chunks: 4, segmentBytes: 30_000)
        #expect(try !fixture.sync())
        fixture.end()
        try fixture.start()
        #expect(try fixture.sync())
        // The third chunk twice, and the records of all four.
        #expect(server.requests.count == 6)
        #expect(Set(server.requests.map(\.path)).count == 5)
    }

    @Test func soundThatABucketHas_isSentToAnotherOne() throws {
        let puts = Locked(0)
        let server = try FaultyServer { _ in
            puts.update { $0 += 1 }
            return puts.value == 3 ? .answer(status: 503, body: "") : .stored
        }
        defer { server.close() }
        let place = "http://127.0.0.1:\(server.port)"
        let fixture = try Fixture(url: place + "/bucket", maxBatchBytes: 64 << 20)
        defer { fixture.finish() }
        fixture.addAudio(.wav, chunks: 4, segmentBytes: 30_000)
        #expect(try !fixture.sync())
        fixture.end()
        fixture.settings.transport.endpoint = place + "/another"
        try fixture.start()
        #expect(try fixture.sync())
        #expect(server.requests.filter { $0.path.hasPrefix("/another/") }.count == 5)
    }
}
