// What is written at each health tick: the snapshot, and figures for Prometheus where that is wanted.
import Host

/// Tells once that a file cannot be written, and again only after it could be written in between.
final class HealthFiles: Sendable {
    private let directory: String
    private let errors: ErrorLog
    private let log: Log
    private let problem = StateBox<String?>(nil)

    /// `directory`: where the snapshot goes.
    init(_ directory: String, errors: ErrorLog, log: Log) {
        self.directory = directory
        self.errors = errors
        self.log = log
    }

    func writeSnapshot(_ report: StatusReport) { Snapshot.write(report.json, to: directory) }

    /// Writes the file for Prometheus; its disk may hang.
    func write(_ metrics: String, of report: StatusReport, at now: Stamp) {
        var message: String?
        do {
            try MetricsText(report, at: now.wall).write(to: metrics)
        } catch {
            message = "metrics.textfile \(error)"
        }
        let isNew = problem.update { [message] problem in
            defer { problem = message }
            return problem != message
        }
        guard isNew, let message else { return }
        errors.add(Failure(message), at: now.boot)
        log.warning("metrics", ["why": message])
    }
}
