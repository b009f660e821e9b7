// The files written at each health tick: the snapshot and, if configured, Prometheus metrics.
package import Host

/// Writes the files of a health tick; reports a write error once until a write has succeeded.
package final class HealthFiles: Sendable {
    private let directory: String
    private let errors: ErrorLog
    private let log: Log
    private let problem = StateBox<String?>(nil)

    /// `directory` receives the snapshot.
    package init(_ directory: String, errors: ErrorLog, log: Log) {
        self.directory = directory
        self.errors = errors
        self.log = log
    }

    package func writeSnapshot(_ report: StatusReport) {
        Snapshot.write(report.json, to: directory)
    }

    /// Writes the metrics file for Prometheus; its disk may hang.
    package func write(_ metrics: String, of report: StatusReport, at now: Stamp) {
        var message: String?
        do {
            try PrometheusText(report, at: now.wall).write(to: metrics)
        } catch {
            message = "metrics.textfile \(error)"
        }
        guard problem.replace(with: message) != message, let message else { return }
        errors.add(Failure(message), at: now.boot)
        log.warning("metrics", ["why": message])
    }
}
