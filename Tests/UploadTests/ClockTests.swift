// Effects of the wall clock on uploads: timestamps on the wire, and the wait for the first sync.
import Configuration
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

@Suite struct UploadClockTests {
    private static let now = WallTime(milliseconds: 1_795_235_407_000)

    private func fixture(
        _ clock: any HostClock,
        patience: Duration = .seconds(120),
        _ behaviour: @escaping @Sendable (Request) -> Behaviour = { _ in .ok }
    ) throws -> UploadFixture {
        try UploadFixture(clock: clock, change: { $0.upload.clockPatience = patience }, behaviour)
    }

    private static func clock(_ wall: WallTime, boot seconds: Int64) -> ManualClock {
        ManualClock(
            Stamp(boot: BootInstant(nanoseconds: seconds * 1_000_000_000), wall: wall)
        )
    }

    private static func queue(
        _ folder: TemporaryFolder,
        _ clock: ManualClock,
        boot: String = "b"
    ) throws -> Queue {
        let path = folder.path + "/q"
        return try Queue(at: path, bootID: boot, clock: clock)
    }

    /// A gap in the first minutes of a boot: its span was recorded by the wrong clock and must be
    /// corrected.
    @Test func eventSpan_isCorrected_exceptWhereItWasRight() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(WallTime(milliseconds: 60_000), boot: 60)
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        func accept(since: WallTime, until: WallTime) {
            let detail: [(key: String, value: EventValue)] = [
                ("from", .time(since)), ("to", .time(until)), ("reason", .text("its \"from\"")),
            ]
            queue.accept(Event(.gap, source: "audio", detail: detail, stamp: clock.stamp()))
        }
        accept(since: clock.wall() + .seconds(-30), until: clock.wall())
        clock.advance(by: .seconds(10))
        // A GNSS receiver knows the time but does not set the clock.
        let right = Stamp(boot: clock.now(), wall: Self.now)
        try queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        clock.advance(by: .seconds(5))
        accept(since: Self.now, until: Self.now + .seconds(5))
        let texts = try Self.events(queue, 1...2)
        let spans = [
            "04:29:27.000Z\",\"to\":\"2026-11-21T04:29:57",
            "04:30:07.000Z\",\"to\":\"2026-11-21T04:30:12",
        ]
        for (text, span) in zip(texts, spans) {
            #expect(text.contains("\"from\":\"2026-11-21T\(span).000Z\""))
        }
        #expect(texts.count == 2)
    }

    private static func events(
        _ queue: Queue,
        _ rows: ClosedRange<Int64>
    ) throws -> [String] {
        try queue.flushed()
        var texts: [String] = []
        try RecordSource(reader: queue.reader(), clockMap: .max).forEach(.events, rows) { _, json in
            texts.append(String(decoding: json, as: UTF8.self))
            return true
        }
        return texts
    }

    /// The clock was wrong by less than twice the gap: its start is nearer to the right time, but
    /// was recorded by the wrong clock.
    @Test func gapLongerThanClockError_endsAfterItBegins() throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now + .seconds(3600), boot: 7200)
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        let detail: [(key: String, value: EventValue)] = [
            ("from", .time(clock.wall() + .seconds(-2400))), ("to", .time(clock.wall())),
        ]
        queue.accept(Event(.gap, source: "audio", detail: detail, stamp: clock.stamp()))
        let right = Stamp(boot: clock.now(), wall: Self.now)
        try queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        let text = try #require(Self.events(queue, 1...1).first)
        let span = "\"from\":\"2026-11-21T03:50:07.000Z\",\"to\":\"2026-11-21T04:30:07.000Z\""
        #expect(text.contains(span), "\(text)")
    }

    /// The device was off overnight and only a GNSS receiver knows the time: evicted records are
    /// days old.
    @Test(arguments: [-8, 8])
    func lossesOfThisBoot_areDatedRight_ifClockErrorIsShort(
        hours: Int
    ) throws {
        let folder = TemporaryFolder()
        let clock = Self.clock(Self.now + .seconds(hours * 3600), boot: 600)
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        let (first, right) = (clock.stamp(), Stamp(boot: clock.now(), wall: Self.now))
        try queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        clock.advance(by: .seconds(86_400))
        queue.record(Loss(.gap, .audio, records: 1, from: first, to: clock.stamp()))
        try waitUntil("the loss is reported") {
            queue.checkStorage()
            return try queue.flushed().pending(.events) != nil
        }
        let text = try #require(Self.events(queue, 1...1).first)
        let span = "\"from\":\"2026-11-21T04:30:07.000Z\",\"to\":\"2026-11-22T04:30:07.000Z\""
        #expect(text.contains(span), "\(text)")
    }

    /// A board without an RTC continues from its last time, eight hours later: earlier losses keep
    /// their time.
    @Test func lossesOfEarlierBoot_keepTheirTime_afterCorrection() throws {
        let folder = TemporaryFolder()
        let before = Self.clock(Self.now, boot: 600)
        let first = try Self.queue(folder, before, boot: "a")
        try first.perform { try $0.recordClock(before.stamp(), synced: true, by: .gpsd) }
        // The first is reported at once, those within the next five minutes later.
        first.record(Loss(.gap, .audio, records: 1, from: before.stamp(), to: before.stamp()))
        try first.flushed()
        before.advance(by: .seconds(60))
        first.record(Loss(.gap, .audio, records: 2, from: before.stamp(), to: before.stamp()))
        try first.flushed()
        first.close()
        let after = Self.clock(Self.now + .seconds(80), boot: 20)
        let second = try Self.queue(folder, after)
        defer { second.close() }
        after.advance(by: .seconds(400))
        second.record(Loss(.gap, .location, records: 1, from: after.stamp(), to: after.stamp()))
        try second.flushed()
        let right = Stamp(boot: after.now(), wall: Self.now + .seconds(8 * 3600))
        try second.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        let texts = try Self.events(second, 1...2).filter { $0.contains("\"records\":2") }
        let span = "\"from\":\"2026-11-21T04:31:07.000Z\",\"to\":\"2026-11-21T04:31:07.000Z\""
        #expect(texts.count == 1)
        #expect(texts.first?.contains(span) == true, "\(texts)")
    }

    @Test func everyYear_isRFC3339OnTheWire_inTheOrderOfCapture() throws {
        let texts = [
            "2026-11-21T04:30:07.000Z", "1970-01-01T00:00:00.000Z", "2038-01-19T03:14:07.999Z",
            "2038-01-19T03:14:08.000Z", "2019-12-31T23:59:59.999Z", "2106-02-07T06:28:16.000Z",
            "9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.001Z",
        ]
        let clock = Self.clock(Self.now, boot: 500)
        let fixture = try fixture(clock)
        defer { fixture.finish() }
        for text in texts {
            clock.advance(by: .seconds(1))
            clock.stepWall(to: try #require(WallTime(rfc3339: text)))
            fixture.add(clock.stamp())
        }
        _ = try fixture.sync()
        let (records, clockState) = try fixture.newest()
        #expect(records == texts.map { "\($0) unsynced" })
        #expect(clockState == "unsynced")
    }

    @Test func clockThatIsPutRight_datesWhatWaited() throws {
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 20)
        let fixture = try fixture(clock)
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        fixture.tick()
        try waitUntil("the tick has waited") { fixture.phase == .waitingForClock }
        clock.advance(by: .seconds(30))
        clock.stepWall(to: Self.now)
        try fixture.record(clock.stamp(), synced: true)
        clock.advance(by: .seconds(1))
        fixture.add(clock.stamp())
        fixture.tick()
        try waitUntil("the batch is sent") { !fixture.server.requests.isEmpty }
        let (records, clockState) = try fixture.newest()
        #expect(
            records == ["2026-11-21T04:29:37.000Z corrected", "2026-11-21T04:30:08.000Z synced"]
        )
        #expect(clockState == "synced")
    }

    @Test func unsyncedUpload_waitsTwoMinutesFromBoot() throws {
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 119)
        let fixture = try fixture(clock)
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        fixture.tick()
        try waitUntil("the tick has waited") { fixture.phase == .waitingForClock }
        // A step of the wall clock is not a synchronisation, and does not start uploads early.
        clock.stepWall(to: Self.now)
        try fixture.record(clock.stamp(), synced: false)
        fixture.tick()
        clock.advance(by: .seconds(1))
        fixture.tick()
        try waitUntil("the batch is sent") { !fixture.server.requests.isEmpty }
        #expect(try fixture.newest().records == ["1970-01-01T00:00:00.000Z unsynced"])
        let sentAt = fixture.board.state.value?.lastAttemptAt?.boot
        #expect(sentAt == BootInstant(nanoseconds: 120_000_000_000))
    }

    /// A sync on request failed: its backoff must not wake the uploader repeatedly until the wait
    /// for the clock is over.
    @Test func retry_waitsUntilTheClockTimeoutEnds() throws {
        let settings = UploadSettings { $0.clockPatience = .seconds(1200) }
        let fixture = try BudgetFixture(settings, isSynced: false) { _ in .hangUp }
        defer { fixture.finish() }
        addFixes(10, to: fixture.queue)
        _ = fixture.sync.perform(.asked)
        fixture.clock.advance(by: .seconds(60))
        #expect(fixture.sync.perform(.retry) == SyncResult())
        #expect(fixture.sync.retryDelay == .seconds(140))
    }

    /// A host clock whose boot time begins with the test.
    private struct FreshBoot: HostClock {
        let start = SystemClock().now()

        func now() -> BootInstant {
            BootInstant(nanoseconds: (SystemClock().now() - start).nanoseconds)
        }

        func wall() -> WallTime { WallTime(milliseconds: now().milliseconds) }
    }

    @Test func waitForTheClock_endsByItself_notWithTheNextTick() throws {
        let clock = FreshBoot()
        let fixture = try fixture(clock, patience: .seconds(2))
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        fixture.tick()
        // One tick and no other to come: without its own deadline it would wait forever.
        try waitUntil("the batch is sent") { !fixture.server.requests.isEmpty }
        #expect(try fixture.newest().clock == "unsynced")
    }

    @Test func someoneWhoAsks_doesNotWaitForTheClock() throws {
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 20)
        let fixture = try fixture(clock)
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        _ = try fixture.sync()
        #expect(fixture.server.requests.count == 1)
    }

    /// The body says that its clock is synced, so its own date has to be right too.
    @Test func batchDate_isFromGNSS_ifSystemClockIsWrong() throws {
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 200)
        let fixture = try fixture(clock)
        defer { fixture.finish() }
        let right = Stamp(boot: clock.now(), wall: Self.now)
        try fixture.queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        clock.advance(by: .seconds(5))
        fixture.add(clock.stamp())
        #expect(try fixture.sync())
        let sent = try Sent(#require(fixture.server.requests.first))
        #expect(sent.clock == "synced")
        #expect(sent.at == (Self.now + .seconds(5)).rfc3339)
    }

    /// The network comes up minutes after boot: the first batch is frozen before the time is known.
    @Test func unsentBatch_isDated_onceTheClockIsRight() throws {
        let port = freePort()
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 200)
        let fixture = try UploadFixture(
            endpoint: "http://127.0.0.1:\(port)/api/ingest",
            clock: clock,
            change: { $0.upload.interval = .seconds(86_400) }
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        #expect(try !fixture.sync())
        clock.advance(by: .seconds(30))
        clock.stepWall(to: Self.now)
        try fixture.record(clock.stamp(), synced: true)
        let server = try FaultyServer(port: port) { _ in .ok }
        defer { server.close() }
        #expect(try fixture.sync())
        let sent = try Sent(#require(server.requests.first))
        #expect(sent.records == ["2026-11-21T04:29:37.000Z corrected"])
        #expect(sent.clock == "synced")
        #expect(sent.at == Self.now.rfc3339)
        #expect(server.requests.count == 1)
    }

    /// The first date of the boot was wrong, and nothing of the batch was sent yet.
    @Test func unsentBatch_isRedated_whenFirstTimeIsCorrected() throws {
        let port = freePort()
        let clock = Self.clock(Self.now + .seconds(-86_400), boot: 200)
        let fixture = try UploadFixture(
            endpoint: "http://127.0.0.1:\(port)/api/ingest",
            clock: clock,
            change: { $0.upload.interval = .seconds(86_400) }
        ) { _ in .ok }
        defer { fixture.finish() }
        try fixture.record(clock.stamp(), synced: true)
        fixture.add(clock.stamp())
        #expect(try !fixture.sync())
        clock.advance(by: .seconds(30))
        clock.stepWall(to: Self.now)
        try fixture.record(clock.stamp(), synced: true)
        let server = try FaultyServer(port: port) { _ in .ok }
        defer { server.close() }
        #expect(try fixture.sync())
        let sent = try Sent(#require(server.requests.first))
        #expect(sent.records == ["2026-11-21T04:29:37.000Z corrected"])
        #expect(server.requests.count == 1)
    }

    /// The server may have half of it: the retry has to be identical.
    @Test func batchOfWhichAByteWasSent_keepsItsDates() throws {
        let isBusy = Locked(true)
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 200)
        let fixture = try fixture(clock) { _ in isBusy.value ? .hangUp : .ok }
        defer { fixture.finish() }
        fixture.add(clock.stamp())
        #expect(try !fixture.sync())
        clock.stepWall(to: Self.now)
        try fixture.record(clock.stamp(), synced: true)
        isBusy.update { $0 = false }
        #expect(try fixture.sync())
        #expect(try fixture.newest().records == ["1970-01-01T00:00:00.000Z unsynced"])
        #expect(Set(fixture.server.requests.map(\.body)).count == 1)
    }

    @Test func batchFrozenBeforeTheSync_isTheSameBytesAfterIt() throws {
        let isBusy = Locked(true)
        let clock = Self.clock(WallTime(milliseconds: 0), boot: 200)
        let fixture = try fixture(clock) { _ in
            isBusy.value ? .answer(status: 503, body: "busy") : .ok
        }
        defer { fixture.finish() }
        try fixture.record(clock.stamp(), synced: false)
        fixture.add(clock.stamp())
        _ = try fixture.sync()
        clock.stepWall(to: Self.now)
        for _ in 0..<3 {
            clock.advance(by: .seconds(7 * 3600))
            try fixture.record(clock.stamp(), synced: true)
            try fixture.queue.perform { try $0.pruneClockMap() }
            _ = try fixture.sync()
        }
        isBusy.update { $0 = false }
        _ = try fixture.sync()
        let requests = fixture.server.requests
        // A jump of the clock may trigger a retry in addition to those requested.
        #expect(requests.count >= 5)
        #expect(Set(requests.map(\.body)).count == 1)
        #expect(Set(requests.map { $0.headers["idempotency-key"] }).count == 1)
        #expect(try fixture.newest().records == ["1970-01-01T00:00:00.000Z unsynced"])
    }
}

extension UploadFixture {
    fileprivate func add(_ stamp: Stamp) {
        queue.accept(Fix(stamp: stamp, mode: .twoDimensional, latitude: 1, longitude: 2))
    }

    fileprivate func record(_ stamp: Stamp, synced: Bool) throws {
        try queue.perform { try $0.recordClock(stamp, synced: synced) }
    }

    fileprivate var phase: UploadReport.Phase? { board.state.value?.phase }

    /// Returns the records of the newest request, and the batch's own clock.
    fileprivate func newest() throws -> (records: [String], clock: String) {
        let sent = try Sent(#require(server.requests.last))
        return (sent.records, sent.clock)
    }
}

/// The timestamps in a request.
private struct Sent {
    /// Those of its records, as `timestamp clock`.
    var records: [String]
    /// The batch's own.
    var clock: String
    var at: String

    init(_ request: Request) throws {
        let json = try JSONSerialization.jsonObject(with: gunzip(request.body))
        let body = try #require(json as? [String: Any])
        let metadata = body["batch_metadata"] as? [String: Any] ?? [:]
        let all = body["data"] as? [[String: Any]] ?? []
        records = all.map { "\($0["timestamp"] ?? "?") \($0["clock"] ?? "?")" }
        clock = metadata["clock"] as? String ?? "?"
        at = metadata["sent_at"] as? String ?? "?"
    }
}
