// Counts the records that an export of the archive leaves out.
import ServerArchive

/// Counts the records of each file that were left out; shared by all devices of an export.
final class SkippedRecords {
    /// The records of one file.
    struct Count {
        /// Lines that are not records, and a file whose rest cannot be read.
        var unreadable = 0
        /// Records that the server marked as dated ahead of its clock.
        var ahead = 0
    }

    private var counts: [String: Count] = [:]

    /// Records what a pass over a file left out; an export reads some files more than once.
    func record(_ count: Count, of file: ArchiveFile) {
        guard count.unreadable + count.ahead > 0 else { return }
        let old = counts[file.path] ?? Count()
        counts[file.path] = Count(
            unreadable: max(old.unreadable, count.unreadable),
            ahead: max(old.ahead, count.ahead)
        )
    }

    func add(to outcome: inout ScienceOutcome) {
        outcome.ahead = counts.values.reduce(0) { $0 + $1.ahead }
        outcome.unreadable += counts.values.reduce(0) { $0 + $1.unreadable }
        let first = counts.filter { $0.value.unreadable > 0 }.keys.min()
        outcome.firstUnreadable = outcome.firstUnreadable ?? first
    }
}
