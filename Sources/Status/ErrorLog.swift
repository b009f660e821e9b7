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

    /// The whole content, which is stored and continued after a restart.
    package struct Memory: Sendable, Equatable {
        /// Oldest first.
        package var entries: [Entry] = []
        package var totals: [ErrorCode: Int] = [:]
    }

    private let content: StateBox<Memory>

    package init(_ memory: Memory = Memory()) {
        content = StateBox(memory)
    }

    package var memory: Memory { content.value }

    /// Returns the errors, newest first.
    ///
    /// They are dated by `now`, because at a start the clock may have been years wrong.
    package func recent(at now: Stamp) -> [StatusReport.RecentError] {
        memory.entries.reversed().map {
            StatusReport.RecentError(
                code: $0.failure.code?.rawValue,
                message: $0.failure.message,
                at: now.wall(at: $0.at).rfc3339,
                count: $0.count
            )
        }
    }

    /// The count of each code, such as `E001`.
    package var totals: [String: Int] {
        Dictionary(uniqueKeysWithValues: memory.totals.map { ($0.key.rawValue, $0.value) })
    }

    package func add(_ failure: Failure, at moment: BootInstant) {
        content.update { memory in
            var entry = Entry(failure: failure, at: moment, count: 1)
            if let index = memory.entries.firstIndex(where: { $0.failure == failure }) {
                entry.count += memory.entries.remove(at: index).count
            }
            memory.entries.append(entry)
            if memory.entries.count > Self.limit { memory.entries.removeFirst() }
            if let code = failure.code { memory.totals[code, default: 0] += 1 }
        }
    }
}
