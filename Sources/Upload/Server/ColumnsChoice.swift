// Chooses between rows and columns: the server says whether it takes columns.
package import HTTP
package import Queue
import Records

/// The form of the batches to come.
package struct ColumnsChoice {
    /// The batches that go in rows after one in columns was refused.
    private static let rest = 50

    private let isAllowed: Bool
    private var isTaken = false
    /// How many more batches go in rows, whatever the server says.
    private var left = 0

    /// `isAllowed` false: always rows.
    package init(isAllowed: Bool) { self.isAllowed = isAllowed }

    /// Makes the body of a range: in its form if it has one, else in columns if the server takes
    /// them and they can carry the records; one record alone is shorter as a row.
    package mutating func draft(
        of range: PendingRange,
        _ make: (PendingRange) throws -> BodyDraft
    ) throws -> BodyDraft {
        var range = range
        let isRow = range.stream == .audio || range.first == range.last
        range.form = range.form ?? (isRow ? .rows : next())
        do {
            return try make(range)
        } catch is ColumnTable.UnfitRowError {
            range.form = .rows
            return try make(range)
        }
    }

    private mutating func next() -> Batch.Form {
        guard isAllowed, isTaken else { return .rows }
        guard left == 0 else {
            left -= 1
            return .rows
        }
        return .columns
    }

    /// Evaluates an answer to a batch of a form; returns its verdict.
    package mutating func verdict(_ answer: Answer, _ verdict: Verdict, of form: Batch.Form)
        -> Verdict
    {
        switch verdict {
        case .accepted: isTaken = answer.reply.takesColumns
        // It may be for a record, or it may be that the server does not take what it says.
        case .refused, .tooLarge: if form == .columns { left = Self.rest }
        default:
            guard answer.status == 415, form == .columns else { break }
            left = Self.rest
            return .refused(message: answer.message)
        }
        return verdict
    }
}
