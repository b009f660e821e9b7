// From the board to a status report.
internal import Board
internal import CLinux
internal import Glibc
internal import Host
internal import Queue
internal import Streams
internal import Upload

/// The sources by the names that `status` uses.
enum SourceName: String, Sendable, CaseIterable {
    case beacons
    case location
    case audio
}

/// Every state that a gateway shows, and who is to be told of a change.
final class GatewayBoard: Sendable {
    let sources: [SourceName: Publisher<SourceReport>]
    let upload = Publisher<UploadReport>()
    /// Why a source does not run although it is configured or not: `disabled`, `waiting for enrolment`.
    let resting = StateBox([SourceName: String]())
    let errors = ErrorLog()

    init() {
        sources = Dictionary(
            uniqueKeysWithValues: SourceName.allCases.map { ($0, Publisher<SourceReport>()) }
        )
    }
}

/// What the queue has on its books, as of its last commit.
private struct Books: Sendable {
    var statistics: [StreamStatistics]
    var traffic: [DayTraffic]
    var losses: [LossEntry]

    /// Empty while there is no database.
    init(_ queue: Queue) {
        statistics = queue.statistics()
        traffic = (try? queue.traffic()) ?? []
        losses = (try? queue.losses()) ?? []
    }
}

/// Puts a report together from the board and the queue.
struct StatusCollector: Sendable {
    let board: GatewayBoard
    let queue: Queue
    let clock: any HostClock
    let clockState: @Sendable () -> ClockState
    let configuration: Configuration
    let deviceID: String
    let version: String
    let bootID: String
    let started: BootInstant
    let nextSync: @Sendable () -> BootInstant?

    func report() -> StatusReport {
        let figures = ProcessFigures()
        let books = Books(queue)
        let statistics = books.statistics
        let storage = storageFigures(figures, statistics)
        var report = StatusReport(
            version: version,
            deviceId: deviceID,
            state: .healthy,
            reasons: [],
            daemon: StatusReport.Daemon(
                running: true,
                pid: Int(getpid()),
                uptimeS: Int((clock.now() - started).milliseconds / 1000),
                rssBytes: figures.residentBytes,
                cpuS: rounded(figures.cpuSeconds, 100)
            ),
            clock: clockFigures(),
            sources: sources(statistics),
            streams: streams(statistics),
            upload: uploadFigures(books),
            storage: storage,
            losses: losses(books),
            recentErrors: board.errors.recent.map {
                StatusReport.RecentError(
                    code: $0.failure.code?.rawValue,
                    message: $0.failure.message,
                    at: $0.at.rfc3339,
                    count: $0.count
                )
            }
        )
        (report.state, report.reasons) = HealthRules.judge(report, storageNotes)
        return report
    }

    private func clockFigures() -> StatusReport.ClockFigures {
        let state = clockState()
        return StatusReport.ClockFigures(
            state: state.isSynced ? "synced" : "unsynced",
            bootId: bootID,
            offsetS: rounded(state.steppedSeconds, 1000)
        )
    }

    private func sources(_ statistics: [StreamStatistics]) -> [String: StatusReport.Source] {
        var sources: [String: StatusReport.Source] = [:]
        for name in SourceName.allCases {
            let state = board.sources[name]?.state ?? .unknown
            var source = source(state)
            if let reason = board.resting.value[name] {
                source.state = "disabled"
                source.reason = reason
            }
            // For sound a record is a chunk, which only the queue can count.
            if name == .audio {
                let sound = statistics.first { $0.stream == .audio }
                source.records = sound?.accepted ?? 0
                if let quiet = sound?.notKept, quiet > 0 {
                    source.detail += ", \(quiet) quiet not kept"
                }
            }
            sources[name.rawValue] = source
        }
        return sources
    }

    private func source(_ state: BoardState<SourceReport>) -> StatusReport.Source {
        let report = state.value ?? SourceReport(device: "")
        var source = StatusReport.Source(
            state: "unknown",
            reason: nil,
            code: nil,
            lastRecordAt: report.lastRecordAt?.wall.rfc3339,
            records: report.records,
            ratePerS: rounded(report.ratePerSecond, 100),
            dropped: report.dropped,
            restarts: report.restarts,
            device: report.device,
            detail: report.detail
        )
        switch state {
        case .unknown: break
        case .loading: source.state = "loading"
        case .loaded: source.state = "loaded"
        case .error(let failure, _):
            source.state = "error"
            source.reason = failure.message
            source.code = failure.code?.rawValue
        }
        return source
    }

    private func streams(
        _ statistics: [StreamStatistics]
    ) -> [String: StatusReport.StreamFigures] {
        let upload = board.upload.state.value ?? UploadReport()
        let next = (upload.notBefore ?? nextSync()).map(wall)
        var streams: [String: StatusReport.StreamFigures] = [:]
        for figures in statistics where figures.isWorthTelling {
            let state = upload.streams[figures.stream] ?? StreamUpload()
            var stream = StatusReport.StreamFigures(figures)
            stream.inFlight = state.inFlight
            stream.lastAttemptAt = state.lastAttemptAt?.wall.rfc3339
            stream.lastSuccessAt = state.lastSuccessAt?.wall.rfc3339
            stream.lastError = state.lastError.map {
                StatusReport.ErrorAt(
                    code: $0.failure.code?.rawValue,
                    message: $0.failure.message,
                    at: $0.at.wall.rfc3339
                )
            }
            stream.nextAttemptAt = next
            streams[configuration.wire(of: figures.stream)] = stream
        }
        return streams
    }

    private func uploadFigures(_ books: Books) -> StatusReport.UploadFigures {
        let upload = board.upload.state.value ?? UploadReport()
        return StatusReport.UploadFigures(
            lastAttemptAt: upload.lastAttemptAt?.wall.rfc3339,
            lastSuccessAt: upload.lastSuccessAt?.wall.rfc3339,
            state: configuration.upload.target == nil ? "no endpoint" : upload.phase.rawValue,
            nextSyncAt: nextSync().map(wall),
            bytesToday: bytesToday(books)
        )
    }

    private func bytesToday(_ books: Books) -> Int64 {
        let today = clock.wall().utcDay
        return books.traffic.first { $0.day == today }?.traffic.total ?? 0
    }

    /// A moment to come, on the wall clock as it is now.
    private func wall(_ moment: BootInstant) -> String {
        (clock.wall() + (moment - clock.now())).rfc3339
    }

    private func storageFigures(
        _ figures: ProcessFigures,
        _ statistics: [StreamStatistics]
    ) -> StatusReport.Storage {
        let state = queue.storage.state
        let report = state.value
        var level = report?.level.rawValue ?? "ok"
        if case .error = state { level = "error" }
        let path = Gateway.databasePath(configuration.stateDirectory)
        let reusable = report?.room.reusableBytes ?? 0
        return StatusReport.Storage(
            databaseBytes: FileSpace.size(path) + FileSpace.size(path + "-wal"),
            freeBytes: FileSpace.free(configuration.stateDirectory) + reusable,
            reusableBytes: reusable,
            writtenBytes: figures.writtenBytes,
            evictedRecords: statistics.reduce(0) { $0 + $1.evicted },
            state: level
        )
    }

    /// What only the queue can say in words.
    private var storageNotes: HealthRules.StorageNotes {
        var notes = HealthRules.StorageNotes()
        notes.setAside = queue.setAside
        switch queue.storage.state {
        case .unknown, .loading: break
        case .loaded(let report): notes.detail = report.detail
        case .error(let failure, _): notes.detail = failure.message
        }
        return notes
    }

    /// What was lost since the database was made, and what is not entered yet.
    private func losses(_ books: Books) -> [StatusReport.Loss] {
        let known = books.losses.map {
            StatusReport.Loss(
                stream: configuration.wire(of: $0.stream),
                kind: $0.kind.rawValue,
                records: $0.records,
                from: $0.from.rfc3339,
                to: $0.to.rfc3339
            )
        }
        let new = queue.newLosses.map {
            StatusReport.Loss(
                stream: configuration.wire(of: $0.stream),
                kind: $0.kind.rawValue,
                records: Int($0.records),
                from: wall($0.from.boot),
                to: wall($0.to.boot)
            )
        }
        return known + new
    }
}

/// What makes a gateway degraded or critical (contract, section 1).
enum HealthRules {
    /// Of the storage, what `status --json` has no field for.
    struct StorageNotes {
        /// Why the state is not `ok`.
        var detail = ""
        /// Databases that were set aside as damaged.
        var setAside: [SetAside] = []
    }

    /// What a person may do with the file.
    private static func advice(_ database: SetAside) -> String {
        switch database.waiting {
        case nil: "it is being read, leave it there"
        case 0?: "nothing in it waits any more: keep a copy if you want one, then delete it"
        case let waiting?:
            "\(waiting) records in it wait for their upload, leave it there until then"
        }
    }

    static func judge(
        _ report: StatusReport,
        _ storage: StorageNotes = StorageNotes()
    ) -> (StatusReport.Health, [String]) {
        var critical: [String] = []
        var degraded: [String] = []
        if !report.daemon.running { critical.append("daemon not running") }
        if report.upload.state == UploadReport.Phase.tokenRefused.rawValue {
            critical.append("token refused")
        }
        switch report.storage.state {
        case "critical": critical.append("storage nearly full: \(storage.detail)")
        case "error": critical.append("records do not reach the disk: \(storage.detail)")
        case "full": degraded.append("storage \(storage.detail)")
        case "ok" where !storage.detail.isEmpty: degraded.append("storage: \(storage.detail)")
        case "low": degraded.append("little storage left: \(storage.detail)")
        default: break
        }
        for database in storage.setAside {
            critical.append("database set aside as corrupt: \(database.path); \(advice(database))")
        }
        for (name, source) in report.sources.sorted(by: { $0.key < $1.key }) {
            if source.state == "error" { degraded.append("\(name): \(source.reason ?? "error")") }
        }
        for (name, stream) in report.streams.sorted(by: { $0.key < $1.key }) {
            if stream.quarantined > 0 {
                degraded.append("\(name): \(stream.quarantined) records in quarantine")
            }
        }
        let failing = report.streams.values.compactMap(\.lastError).max { $0.at < $1.at }
        if let failing { degraded.append("uploads failing: \(failing.message)") }
        if report.clock.state == "unsynced" {
            degraded.append("clock not synced since this boot")
        }
        let state: StatusReport.Health =
            !critical.isEmpty ? .critical : degraded.isEmpty ? .healthy : .degraded
        return (state, critical + degraded)
    }
}

func rounded(_ value: Double, _ parts: Double) -> Double { (value * parts).rounded() / parts }
