// The part of the status that survives a restart of the program.
package import Host
import JSON

/// Sync dates, errors with their totals, and the sources' counters, stored in the queue's database.
package struct PersistedState: Codable, Sendable, Equatable {
    /// The name under which the queue stores this value.
    package static let memo = "past"

    package struct Attempts: Codable, Sendable, Equatable {
        package var attempt: WallTime?
        package var success: WallTime?
        package var error: StatusReport.ErrorAt?
    }

    package struct Counters: Codable, Sendable, Equatable {
        package var records: Int
        package var dropped: Int
        package var restarts: Int
        package var last: WallTime?
    }

    package var upload = Attempts()
    package var streams: [String: Attempts] = [:]
    package var sources: [String: Counters] = [:]
    /// Newest first.
    package var errors: [StatusReport.RecentError] = []
    package var totals: [String: Int] = [:]
    package var lastJob: StatusReport.Remote.Job?

    package init() {}

    /// Takes the state from a report, which includes the state before this start.
    package init(_ report: StatusReport) {
        let dates = report.upload
        upload = Attempts(attempt: dates.lastAttemptAt, success: dates.lastSuccessAt)
        streams = report.streams.mapValues {
            Attempts(attempt: $0.lastAttemptAt, success: $0.lastSuccessAt, error: $0.lastError)
        }
        sources = report.sources.mapValues {
            Counters(
                records: $0.records,
                dropped: $0.dropped,
                restarts: $0.restarts,
                last: $0.lastRecordAt
            )
        }
        errors = report.recentErrors
        totals = report.errorTotals
        lastJob = report.remote?.lastJob
    }

    /// Parses a stored `text`; empty for any other text.
    package init(text: String?) {
        let read = text.flatMap {
            try? JSONInput.decode(Self.self, from: Array($0.utf8), snakeCase: true)
        }
        self = read ?? Self()
    }

    package var text: String { String(decoding: encodedJSON(self), as: UTF8.self) }

    /// Adds this state to a report that covers the time since the start.
    package func add(to report: inout StatusReport) {
        report.upload.lastAttemptAt = report.upload.lastAttemptAt ?? upload.attempt
        report.upload.lastSuccessAt = report.upload.lastSuccessAt ?? upload.success
        for (name, var stream) in report.streams {
            guard let before = streams[name] else { continue }
            // The newest failure counts until a batch succeeds.
            if stream.lastSuccessAt == nil { stream.lastError = stream.lastError ?? before.error }
            stream.lastAttemptAt = stream.lastAttemptAt ?? before.attempt
            stream.lastSuccessAt = stream.lastSuccessAt ?? before.success
            report.streams[name] = stream
        }
        for (name, var source) in report.sources {
            guard let before = sources[name] else { continue }
            // Audio records are chunks, which the queue counts across restarts.
            if name != SourceName.audio.rawValue { source.records += before.records }
            source.dropped += before.dropped
            source.restarts += before.restarts
            source.lastRecordAt = source.lastRecordAt ?? before.last
            report.sources[name] = source
        }
        for error in errors {
            let known = report.recentErrors.firstIndex {
                $0.code == error.code && $0.message == error.message
            }
            if let known {
                report.recentErrors[known].count += error.count
            } else if report.recentErrors.count < ErrorLog.limit {
                report.recentErrors.append(error)
            }
        }
        report.errorTotals.merge(totals) { $0 + $1 }
        if report.remote?.lastJob == nil { report.remote?.lastJob = lastJob }
    }
}
