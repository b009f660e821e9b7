// The uploader's report, kept up to date and published.
internal import Board
internal import Host
internal import Queue
internal import Streams

/// Writes the report; used by the sync's thread.
final class SyncReportBook {
    private let board: Publisher<UploadReport>
    private let clock: any HostClock
    private var report: UploadReport

    init(_ board: Publisher<UploadReport>, _ clock: any HostClock, streams: [Stream]) {
        self.board = board
        self.clock = clock
        report = (board.state.value ?? UploadReport()).resumed()
        for stream in streams where report.streams[stream] == nil {
            report.streams[stream] = StreamUpload()
        }
    }

    var phase: UploadReport.Phase { report.phase }

    func enter(
        _ phase: UploadReport.Phase,
        notBefore: BootInstant? = nil,
        held: Set<Stream> = []
    ) {
        report.phase = phase
        report.notBefore = notBefore
        report.held = held
        publish()
    }

    func sending(_ batch: Batch) {
        let now = clock.stamp()
        report.lastAttemptAt = now
        report.streams[batch.stream, default: StreamUpload()].lastAttemptAt = now
        report.streams[batch.stream, default: StreamUpload()].inFlight = batch.records
        publish()
    }

    /// The request is over; what came of it is told, and published, next.
    func sent(_ batch: Batch, bytes: Int) {
        report.streams[batch.stream]?.inFlight = 0
        report.bytesSent += Int64(bytes)
    }

    func accepted(_ batch: Batch) {
        let now = clock.stamp()
        report.lastSuccessAt = now
        report.streams[batch.stream]?.lastSuccessAt = now
        report.streams[batch.stream]?.lastError = nil
        report.streams[batch.stream]?.uploaded += batch.records
        publish()
    }

    func failed(_ failure: Failure, _ streams: [Stream]) {
        let error = TimedFailure(failure: failure, at: clock.stamp())
        for stream in streams { report.streams[stream, default: StreamUpload()].lastError = error }
        publish()
    }

    private func publish() { board.loaded(report) }
}
