// The last few errors, kept for later because journals on a Pi are often in memory only.
package import Host

/// The newest distinct errors, and all error codes seen, each with a count.
package final class ErrorLog: Sendable {
    package static let limit = 10

    package struct Entry: Sendable, Equatable {
        package var failure: Failure
        package var at: BootInstant
        package var count: Int
    }

    private struct Content: Sendable {
        var entries: [Entry] = []
        var totals: [String: Int] = [:]
    }

    private let content = StateBox(Content())

    /// The errors, oldest first.
    package var entries: [Entry] { content.value.entries }

    /// Returns the errors, newest first.
    ///
    /// They are dated by `now`, because at a start the clock may have been years wrong.
    package func recent(at now: Stamp) -> [StatusReport.RecentError] {
        entries.reversed().map {
            StatusReport.RecentError(
                code: $0.failure.code,
                message: $0.failure.message,
                at: now.wall(at: $0.at),
                count: $0.count
            )
        }
    }

    /// The count of each code, such as `E001`.
    package var totals: [String: Int] { content.value.totals }

    package func add(_ failure: Failure, at moment: BootInstant) {
        content.update { content in
            var entry = Entry(failure: failure, at: moment, count: 1)
            if let index = content.entries.firstIndex(where: { $0.failure == failure }) {
                entry.count += content.entries.remove(at: index).count
            }
            content.entries.append(entry)
            if content.entries.count > Self.limit { content.entries.removeFirst() }
            if let code = failure.code { content.totals[code.rawValue, default: 0] += 1 }
        }
    }
}
