// What the queue says of records on their way to the disk.
internal import Board
package import Host
package import Streams

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

    /// Enters what a boot before this one lost, dated by what is known of that boot.
    ///
    /// It is on the disk when this returns; nothing of it when it throws.
    package func enter(_ losses: [Loss], ofBoot bootID: String) throws {
        try perform { writer in
            let boot = try writer.boot(named: bootID)
            for loss in losses { try writer.note(loss, fromBoot: boot, toBoot: boot) }
        }
    }
}
