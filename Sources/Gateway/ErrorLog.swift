// The last few errors, for whoever looks later: journals on a Pi are often in memory only.
internal import Board
internal import Host

/// Distinct errors with how often each was seen; the newest few are kept.
final class ErrorLog: Sendable {
    static let limit = 10

    struct Entry: Sendable, Equatable {
        var failure: Failure
        var at: WallTime
        var count: Int
    }

    private let entries = StateBox([Entry]())

    /// Newest first.
    var recent: [Entry] { entries.value.reversed() }

    func add(_ failure: Failure, at wall: WallTime) {
        entries.update { entries in
            var entry = Entry(failure: failure, at: wall, count: 1)
            if let index = entries.firstIndex(where: { $0.failure == failure }) {
                entry.count += entries.remove(at: index).count
            }
            entries.append(entry)
            if entries.count > Self.limit { entries.removeFirst() }
        }
    }
}
