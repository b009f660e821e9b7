// The status report, its screen and the control socket's commands.
import Audio
import Foundation
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status
@testable import Upload

@Suite struct StatusTests {
    static let now = WallTime(milliseconds: 1_795_235_407_000)

    func report(_ change: (inout StatusReport) -> Void = { _ in }) -> StatusReport {
        var report = StatusReport(
            version: "1.0",
            deviceId: "d",
            state: .healthy,
            reasons: [],
            daemon: .init(
                running: true,
                pid: 1,
                uptimeS: 61,
                rssBytes: 16_700_000,
                privateBytes: 6_000_000,
                cpuS: 0.5
            ),
            clock: .init(state: .synced, bootId: "b", offsetS: 0),
            sources: [
                "beacons": .init(
                    state: .loaded,
                    reason: nil,
                    code: nil,
                    lastRecordAt: Self.now + .seconds(-3),
                    records: 7,
                    ratePerS: 1.25,
                    dropped: 0,
                    restarts: 0,
                    device: "hci0",
                    detail: "passive scan"
                )
            ],
            streams: [
                "beacons": .init(
                    pending: 1,
                    pendingBytes: 2,
                    inFlight: 0,
                    quarantined: 0,
                    oldestPendingAt: nil,
                    uploaded: 6,
                    lastAttemptAt: nil,
                    lastSuccessAt: nil,
                    lastError: nil,
                    nextAttemptAt: nil
                )
            ],
            upload: .init(
                lastAttemptAt: nil,
                lastSuccessAt: nil,
                state: .idle,
                nextSyncAt: nil,
                bytesToday: 1_234_567
            ),
            storage: .init(
                databaseBytes: 1,
                freeBytes: 2,
                reusableBytes: 0,
                writtenBytes: 3,
                evictedRecords: 0,
                state: .ok
            ),
            losses: [],
            recentErrors: [],
            errorTotals: ["E001": 2]
        )
        change(&report)
        (report.state, report.reasons) = HealthRules.evaluate(report)
        return report
    }

    /// Counters continue, and each error stays one entry, over any number of starts.
    @Test func past_isAddedToWhatHappenedSince() throws {
        let (now, day) = (Self.now, Duration.seconds(86_400))
        let first = report {
            $0.streams["beacons"]?.lastSuccessAt = now
            $0.recentErrors = [.init(code: .network, message: "no route", at: now, count: 3)]
        }
        let past = PersistedState(text: PersistedState(first).text)
        #expect(past == PersistedState(first))
        var next = report {
            $0.recentErrors = [.init(code: nil, message: "else", at: now, count: 1)]
        }
        past.add(to: &next)
        #expect(next.sources["beacons"]?.records == 14)
        #expect(next.streams["beacons"]?.lastSuccessAt == now)
        #expect(next.recentErrors.map(\.message) == ["else", "no route"])
        #expect(next.errorTotals == ["E001": 4])
        var third = report {
            $0.recentErrors = [
                .init(code: .network, message: "no route", at: now + day, count: 1)
            ]
            $0.streams["beacons"]?.lastSuccessAt = now + day
        }
        PersistedState(next).add(to: &third)
        #expect(third.recentErrors.map(\.count) == [4, 1])
        #expect(third.recentErrors.first?.at == now + day)
        #expect(third.streams["beacons"]?.lastSuccessAt == now + day)
        #expect(PersistedState(text: "no JSON") == PersistedState())
        #expect(PersistedState(text: nil) == PersistedState())
    }

    @Test func report_roundTripsAsJSON_withNullForAbsentValues() throws {
        let report = report()
        #expect(StatusReport(json: report.json) == report)
        let text = String(decoding: report.json, as: UTF8.self)
        #expect(text.contains(#""last_error":null"#))
        #expect(text.contains(#""rate_per_s":1.25"#))
        #expect(text.contains(#""last_record_at":"2026-11-21T04:30:04.000Z""#))
        #expect(StatusReport(json: Array("{}".utf8)) == nil)
        let older = String(decoding: report.json, as: UTF8.self)
            .replacingOccurrences(of: "\"room_days\":null,", with: "")
        #expect(!older.contains("room_days"))
        #expect(StatusReport(json: Array(older.utf8)) == report)
    }

    @Test func contradictedClock_isDegraded_withBothTimes() {
        let plain = String(decoding: report().json, as: UTF8.self)
        #expect(!plain.contains("contradiction"))
        let state = ClockContradiction(
            believed: .gpsd,
            time: Self.now,
            other: .kernel,
            otherTime: Self.now + .seconds(-7200)
        )
        let contradicted = report { $0.clock.contradiction = state.message }
        #expect(contradicted.state == .degraded)
        let reason = contradicted.reasons.first ?? ""
        #expect(
            reason.hasPrefix(
                "clock: the GNSS receiver behind gpsd says \(Self.now.rfc3339), NTP says"
            )
        )
        #expect(reason.contains(state.otherTime.rfc3339))
    }

    /// The uploader itself failed, not a batch, so no stream shows it.
    @Test func failedUploader_isReportedWithItsReason() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(at: folder.path + "/q")
        defer { queue.close() }
        var configuration = Configuration()
        configuration.upload.endpoint = "https://example.org/api/ingest"
        let collector = StatusCollector(
            board: GatewayBoard(),
            queue: queue,
            clock: SystemClock(),
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: configuration,
            deviceID: "d",
            version: "1",
            bootID: "b",
            started: SystemClock().now(),
            nextSync: { nil }
        )
        collector.board.upload.failed(Failure("curl_easy_init: no memory", code: .network))
        let report = collector.report()
        #expect(report.upload.state == .error)
        #expect(report.state == .degraded)
        #expect(report.reasons.contains("uploads failing: E001 curl_easy_init: no memory"))
    }

    /// raspi-config's overlay above a read-only root: everything is lost at a power cut.
    @Test func stateDirectoryInMemory_isReported_thoughHealthy() throws {
        let folder = TemporaryFolder()
        let clock = Self.clockAtItsStart
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        var collector = Self.collector(queue, clock)
        #expect(!collector.report().reasons.contains { $0.contains("in memory") })
        let mounts = """
            tmpfs /media/root-rw tmpfs rw,relatime 0 0
            overlay / overlay rw,lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay,workdir=/w 0 0
            """
        collector.memoryWarning = memoryWarning("/var/lib/waypost", mounts)
        let report = collector.report()
        #expect(report.state == .degraded)
        let reason =
            "/var/lib/waypost is in memory, an overlay above the disk: its records are lost when the power fails; `waypost doctor`"
        #expect(report.reasons.contains(reason))
    }

    /// The server refused a new card's device and has accepted it since: no one has to go there.
    @Test func laterServerSuccess_clearsTheCardsProblem() throws {
        let folder = TemporaryFolder("etc", "run")
        let queue = try Queue(at: folder.path + "/q")
        defer { queue.close() }
        let clock = SystemClock()
        var configuration = Configuration()
        configuration.runtimeDirectory = folder.path + "/run"
        let collector = StatusCollector(
            board: GatewayBoard(),
            queue: queue,
            clock: clock,
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: configuration,
            deviceID: "d",
            version: "1",
            bootID: "b",
            started: clock.now(),
            nextSync: { nil }
        )
        let paths = ImportPaths(
            configuration: folder.path + "/etc/waypost.toml",
            credentials: folder.path + "/credstore",
            runtime: configuration.runtimeDirectory
        )
        let owner = ServiceOwner(stateDirectory: folder.path)
        let problem = CardFailure(file: "", "E002 no such token", "ask whoever runs the server")
        _ = try CardReport(paths: paths, files: StepFiles(), owner: owner)
            .record(server: [problem], on: nil)
        func isReported(after success: Stamp) -> Bool {
            var upload = UploadReport()
            upload.lastSuccessAt = success
            collector.board.upload.loaded(upload)
            return collector.report().reasons.contains { $0.contains("E002 no such token") }
        }
        #expect(isReported(after: clock.stamp().advanced(by: .seconds(-60))))
        #expect(!isReported(after: clock.stamp()))
    }

    private static let microphones: [(StatusReport.Source.State, String, String?, String)] = [
        (.loaded, "16 kHz mono, -20 dBFS", nil, "ok"),
        (.loaded, "16 kHz mono, -20 dBFS", "hw:0: delivers 16000 Hz", "fail"),
        (.error, "", "hw:0: no signal for 5 minutes", "fail"),
    ]

    /// The gateway holds the microphone, so the doctor cannot listen: the gateway may hear nothing.
    @Test(arguments: microphones)
    func microphoneOfTheGateway_isWhatItHears(
        source: StatusReport.Source.State,
        detail: String,
        reason: String?,
        state: String
    ) throws {
        let folder = TemporaryFolder()
        var configuration = Configuration()
        configuration.runtimeDirectory = folder.path
        configuration.audio.devices = ["waypost_no_such_device"]
        let reported = report {
            $0.sources["audio"] = $0.sources["beacons"]
            $0.sources["audio"]?.state = source
            $0.sources["audio"]?.detail = detail
            $0.sources["audio"]?.reason = reason
        }
        let input = DoctorInput(
            configuration,
            environment: [:],
            version: "t",
            root: folder.path,
            report: reported
        )
        let finding = try #require(AudioCheck(input: input, onLevel: { _ in }).findings.first)
        #expect(finding.state.rawValue == state)
        #expect(finding.what.contains(reason ?? detail))
    }

    @Test func sourceThatWorksBadly_isDegraded() throws {
        let reported = report {
            $0.sources["audio"] = $0.sources["beacons"]
            $0.sources["audio"]?.reason = "hw:0: 3 % of the samples are clipped"
        }
        #expect(reported.state == .degraded)
        #expect(reported.reasons.contains("audio: hw:0: 3 % of the samples are clipped"))
    }

    /// A board without an RTC starts in 1970, and uploads before the time is known.
    @Test func datesBeforeClockSync_areReportedByCurrentClock() throws {
        let folder = TemporaryFolder()
        let clock = Self.clockAtItsStart
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        let collector = Self.collector(queue, clock)
        let then = clock.stamp()
        var source = SourceReport(device: "gpsd")
        source.lastRecordAt = then
        collector.board.sources[.location]?.loaded(source)
        var upload = UploadReport()
        (upload.lastAttemptAt, upload.lastSuccessAt) = (then, then)
        upload.streams[.location] = StreamUpload()
        upload.streams[.location]?.lastAttemptAt = then
        upload.streams[.location]?.lastSuccessAt = then
        upload.streams[.location]?.lastError = TimedFailure(failure: Failure("no"), at: then)
        collector.board.upload.loaded(upload)
        clock.advance(by: .seconds(60))
        clock.stepWall(to: Self.now + .seconds(60))
        let report = collector.report()
        let stream = try #require(report.streams["linux_gpsd_location"])
        let dates = [
            report.sources["location"]?.lastRecordAt, report.upload.lastAttemptAt,
            report.upload.lastSuccessAt, stream.lastAttemptAt, stream.lastSuccessAt,
            stream.lastError?.at,
        ]
        #expect(dates == Array(repeating: Self.now, count: 6))
    }

    /// A GNSS receiver gives the time before the clock is set; stored errors keep their dates.
    @Test func errors_areDatedByTheReceiver_whileTheClockIsWrong() throws {
        let folder = TemporaryFolder()
        let clock = Self.clockAtItsStart
        let queue = try Self.queue(folder, clock)
        defer { queue.close() }
        let collector = Self.collector(queue, clock)
        collector.board.errors.add(Failure("no such Bluetooth adapter"), at: clock.now())
        let right = Stamp(boot: clock.now(), wall: Self.now)
        try queue.perform { try $0.recordClock(right, synced: true, by: .gpsd) }
        clock.advance(by: .seconds(60))
        #expect(collector.report().recentErrors.map(\.at) == [Self.now])
    }

    /// A board without an RTC, 5 s after its start.
    private static var clockAtItsStart: ManualClock {
        ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 5_000_000_000),
                wall: WallTime(milliseconds: 5000)
            )
        )
    }

    private static func queue(_ folder: TemporaryFolder, _ clock: ManualClock) throws -> Queue {
        try Queue(at: folder.path + "/q", clock: clock)
    }

    private static func collector(_ queue: Queue, _ clock: ManualClock) -> StatusCollector {
        StatusCollector(
            board: GatewayBoard(),
            queue: queue,
            clock: clock,
            clockState: { ClockState(isSynced: true, steppedSeconds: 0) },
            configuration: Configuration(),
            deviceID: "d",
            version: "1",
            bootID: "b",
            started: clock.now(),
            nextSync: { nil }
        )
    }

    @Test func health_isWhatTheManualPageSays() {
        #expect(report().state == .healthy)
        #expect(report { $0.clock.state = .unsynced }.state == .degraded)
        #expect(report { $0.sources["beacons"]?.state = .error }.state == .degraded)
        #expect(report { $0.streams["beacons"]?.quarantined = 1 }.state == .degraded)
        #expect(report { $0.storage.state = .low }.state == .degraded)
        #expect(report { $0.storage.state = .critical }.state == .critical)
        #expect(report { $0.upload.state = .tokenRefused }.state == .critical)
        #expect(report { $0.daemon.running = false }.state == .critical)
        #expect(
            [0, 1, 2] == [StatusReport.Health.healthy, .degraded, .critical].map(\.exitStatus)
        )
    }

    @Test func errors_areCountedByCode_andDatedByThePresentClock() {
        let log = ErrorLog()
        let moment = BootInstant(nanoseconds: 60_000_000_000)
        for number in 0..<20 { log.add(Failure("no way \(number)", code: .network), at: moment) }
        log.add(Failure("of no code"), at: moment)
        log.add(Failure("refused", code: .tokenRefused), at: moment)
        #expect(log.totals == ["E001": 20, "E002": 1])
        let recent = log.recent(at: Stamp(boot: moment + .seconds(90), wall: Self.now))
        #expect(recent.map(\.message).prefix(2) == ["refused", "of no code"])
        #expect(recent.count == ErrorLog.limit)
        // Dated by the current clock.
        #expect(recent.first?.at == Self.now + .seconds(-90))
    }
}

extension StatusReport.DiskFigures {
    static let card = Self(
        name: "mmcblk0",
        sizeBytes: 31_914_983_424,
        writtenBytes: 9_000_000_000,
        bytesADay: 1_500_000_000,
        ownBytesADay: 1_100_000_000,
        enduranceBytes: 3_191_498_342_400,
        years: 5.8
    )
}
