// Records that are acknowledged once they are on the disk, with memos in the same transaction.
import Host
package import Records

extension Queue {
    /// Stores records of a user's program; calls `done` once they are on disk or have failed.
    ///
    /// `texts`, memos by their names, are stored in the same transaction, or not at all if the
    /// records are not stored.
    /// `done` runs on the writer's thread. Its error is `UnknownStreamError`, `QueueFullError`, `QueueClosedError`
    /// or `fullRefusal`; none of the records is stored then.
    package func put(
        _ records: [UserRecord],
        memos texts: [String: String],
        done: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let streams = streams
        var rows: [PlainRow] = []
        for record in records {
            guard let kind = streams[name: record.stream], kind.isOfUser else {
                return done(UnknownStreamError(name: record.stream))
            }
            rows.append(PlainRow(record, kind.stream))
        }
        put(rows, texts, done)
    }

    /// Stores a record of the program's own and memos, as those of a user's program.
    package func put(
        _ record: some PlainRecord,
        memos texts: [String: String],
        done: @escaping @Sendable ((any Error)?) -> Void
    ) { put([PlainRow(record)], texts, done) }

    private func put(
        _ rows: [PlainRow],
        _ texts: [String: String],
        _ done: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let finish: @Sendable ((any Error)?) -> Void = { [memos] error in
            if error == nil { memos.areStored(texts, isCommitted: true) }
            done(error)
        }
        if let fullRefusal, !rows.allSatisfy(\.isOfTheProgram) { return done(fullRefusal) }
        if !mailbox.post(.record(.put(rows, texts, finish))) { done(QueueFullError()) }
    }

    /// Stores records of a user's program without a memo.
    package func put(
        _ records: [UserRecord],
        done: @escaping @Sendable ((any Error)?) -> Void
    ) { put(records, memos: [:], done: done) }
}

extension Stream {
    /// The program's own streams, which are stored also while others fill the disk.
    static let ofTheProgram: Set<Stream> = [.events, .health, .effort, .replies]
}

extension PlainRow {
    var isOfTheProgram: Bool { Stream.ofTheProgram.contains(stream) }
}
