// Keeps the uploader's report up to date and publishes it.
import Host
import Queue
import Records
import StatusBoard

/// Updates the report.
struct SyncReportBook {
    private let board: Publisher<UploadReport>
    private let clock: any HostClock
    private var report: UploadReport
    /// The failure that stopped every stream; nil once that is over.
    private var common: TimedFailure?

    init(_ board: Publisher<UploadReport>, _ clock: any HostClock, streams: [Stream]) {
        self.board = board
        self.clock = clock
        report = (board.state.value ?? UploadReport()).resumed()
        for stream in streams where report.streams[stream] == nil {
            report.streams[stream] = StreamUpload()
        }
    }

    var phase: UploadReport.Phase { report.phase }
    var bytesSent: Int64 { report.bytesSent }

    mutating func enter(
        _ phase: UploadReport.Phase,
        notBefore: BootInstant? = nil,
        atTheLatest: BootInstant? = nil,
        held: Set<Stream> = []
    ) {
        report.phase = phase
        report.notBefore = notBefore
        report.atTheLatest = atTheLatest
        report.held = held
        publish()
    }

    mutating func sending(_ batch: Batch) {
        let now = clock.stamp()
        report.lastAttemptAt = now
        report.streams[batch.stream, default: StreamUpload()].lastAttemptAt = now
        report.streams[batch.stream, default: StreamUpload()].inFlight = batch.records
        publish()
    }

    /// Records that a request has ended; the caller records and publishes its outcome next.
    mutating func sent(_ batch: Batch, bytes: Int) {
        report.streams[batch.stream]?.inFlight = 0
        invariant(bytes >= 0, "a batch has bytes")
        report.bytesSent += Int64(bytes)
    }

    /// Records the tag of the server's jobs, or that it has none any more; published with the outcome.
    mutating func offered(_ delivery: Delivery?) {
        guard let delivery, delivery.verdict == .accepted || delivery.jobs != nil else { return }
        report.jobs = delivery.jobs
    }

    mutating func accepted(_ batch: Batch) {
        let now = clock.stamp()
        report.lastSuccessAt = now
        report.streams[batch.stream]?.lastSuccessAt = now
        report.streams[batch.stream]?.lastError = nil
        report.streams[batch.stream]?.uploaded += batch.records
        publish()
    }

    mutating func failed(_ failure: Failure, _ streams: [Stream]) {
        let error = TimedFailure(failure: failure, at: clock.stamp())
        for stream in streams { report.streams[stream, default: StreamUpload()].lastError = error }
        publish()
    }

    /// Records a failure that stopped every stream.
    mutating func failed(_ failure: Failure, all streams: [Stream]) {
        failed(failure, streams)
        common = streams.first.flatMap { report.streams[$0]?.lastError }
    }

    /// Clears the failure that stopped every stream, also for streams with nothing to send.
    mutating func recovered() {
        guard let common else { return }
        self.common = nil
        for stream in report.streams.keys where report.streams[stream]?.lastError == common {
            report.streams[stream]?.lastError = nil
        }
        publish()
    }

    private func publish() { board.loaded(report) }
}
