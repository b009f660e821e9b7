// What the queue says of records on their way to the disk.
package import Host
package import Records
import StatusBoard
import Synchronization

extension Queue {
    /// What would be lost if the program ended now, as far as is known: part of it may be on the disk already.
    package var inFlight: [RecordsInFlight] {
        let isOpen = isOpen
        return core.inFlight.counts.map { stream, count in
            let after = isOpen ? max(0, newest(stream)) : -1
            return RecordsInFlight(stream: stream, after: after, count: count)
        }
    }

    /// There is a database by now.
    private var isOpen: Bool { generation > 0 }

    /// The disk takes nothing for now, or hangs.
    package var isRefused: Bool {
        guard case .error = storage.state else { return false }
        return true
    }

    /// What of it did not reach this database, in which a later start of the program has it; nil for none.
    package func lost(of records: RecordsInFlight, from: Stamp, to: Stamp) -> Loss? {
        let all = Loss(.dropped, records.stream, records: records.count, from: from, to: to)
        // Without a database, then or now, nothing can have landed, or nobody can tell.
        guard isOpen, records.after >= 0 else { return all }
        let landed = newest(records.stream) - records.after
        // Below zero: this database took the place of a damaged one meanwhile, and got what was in memory.
        guard landed >= 0, landed < records.count else { return nil }
        return Loss(.dropped, records.stream, records: all.records - landed, from: from, to: to)
    }

    /// Losses that are not known to be in the database, each with the commit that enters it.
    ///
    /// It may be there all the same: a commit that hung, or was told as failed, may have landed.
    package var lossesUnderWay: [(loss: Loss, turn: LossTransactionID)] {
        let losses = core.losses.withLock { $0.underWay }
        return losses.map { ($0.loss, core.turn($0.turn)) }
    }

    /// Whether the database has what was to be entered with a commit of this boot, or of one before it.
    package func hasEntered(_ turn: LossTransactionID) -> Bool {
        guard let last = remembered(LossTransactionID.memo).flatMap({ LossTransactionID($0) })
        else { return false }
        return last.bootID == turn.bootID && last.started == turn.started
            && last.number >= turn.number
    }

    /// Enters what boots before this one lost, dated by what is known of these; nothing of a note that was entered before.
    ///
    /// It is on the disk when this returns; nothing of it when it throws.
    package func enter(_ notes: [LossNote]) throws {
        let names = try perform { writer in
            var names = (try writer.memos()[Self.enteredNotes] ?? "").split(separator: " ")
                .map { String($0) }
            for note in notes where !names.contains(note.name) {
                let boot = try writer.boot(named: note.bootID)
                for loss in note.losses { try writer.note(loss, fromBoot: boot, toBoot: boot) }
                names.append(note.name)
            }
            let text = names.suffix(Self.mostNotes).joined(separator: " ")
            // In the same transaction: a power cut may bring the notes back.
            try writer.note(memos: [Self.enteredNotes: text])
            return text
        }
        remember(Self.enteredNotes, names)
    }

    private static let enteredNotes = "entered_notes"
    /// Nothing brings older ones back.
    private static let mostNotes = 32
}
