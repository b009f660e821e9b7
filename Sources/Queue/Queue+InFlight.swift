// Reports records and losses that are not known to be on disk.
package import Host
package import Records
import StatusBoard
import Synchronization

extension Queue {
    /// Records that would be lost if the process ended now; some may already be on disk.
    package var inFlight: [RecordsInFlight] {
        let isOpen = isOpen
        return inFlightCount.counts.map { stream, count in
            let after = isOpen ? max(0, newest(stream)) : -1
            return RecordsInFlight(stream: stream, after: after, count: count)
        }
    }

    /// Whether a database has been opened.
    private var isOpen: Bool { generation > 0 }

    /// Whether the disk fails or hangs.
    package var isRefused: Bool {
        guard case .error = storage.state else { return false }
        return true
    }

    /// Returns an earlier process's records that did not reach this database; nil if all did.
    package func lost(of records: RecordsInFlight, from: Stamp, to: Stamp) -> Loss? {
        let all = Loss(.dropped, records.stream, records: records.count, from: from, to: to)
        // Without a database, then or now, none reached it or nobody can know.
        guard isOpen, records.after >= 0 else { return all }
        let landed = newest(records.stream) - records.after
        // Negative: this database replaced a damaged one and got the records from memory.
        guard landed >= 0, landed < records.count else { return nil }
        return Loss(.dropped, records.stream, records: all.records - landed, from: from, to: to)
    }

    /// Losses not known to be in the database, each with the transaction that records it.
    ///
    /// They may be there: a commit that hung or reported failure may have reached the disk.
    package var lossesUnderWay: [(loss: Loss, turn: LossTransactionID)] {
        let losses = unrecorded.withLock { $0.underWay }
        return losses.map { ($0.loss, lossTransaction($0.turn)) }
    }

    /// Whether the database has the losses of a transaction of this boot or an earlier one.
    package func hasEntered(_ turn: LossTransactionID) -> Bool {
        guard let last = remembered(LossTransactionID.memo).flatMap({ LossTransactionID($0) })
        else { return false }
        return last.bootID == turn.bootID && last.started == turn.started
            && last.number >= turn.number
    }

    /// Records losses of earlier boots, dated as far as known; skips notes already recorded.
    ///
    /// They are on disk on return, and none is if it throws.
    package func enter(_ notes: [LossNote]) throws {
        let names = try perform { writer in
            var names = (try writer.memos()[Self.enteredNotes] ?? "").split(separator: " ")
                .map { String($0) }
            for note in notes where !names.contains(note.name) {
                let boot = try writer.boot(named: note.bootID)
                for loss in note.losses { try writer.record(loss, fromBoot: boot, toBoot: boot) }
                names.append(note.name)
            }
            let text = names.suffix(Self.maxNotes).joined(separator: " ")
            // In the same transaction: a power cut may bring the notes back.
            try writer.record(memos: [Self.enteredNotes: text])
            return text
        }
        remember(Self.enteredNotes, names)
    }

    private static let enteredNotes = "entered_notes"
    /// The number of recorded notes to remember; older ones cannot come back.
    private static let maxNotes = 32
}
