// What the queue says of records on their way to the disk.
package import Host
internal import Streams

extension Queue {
    /// What would be lost if the program ended now, as far as is known: part of it may be on the disk already.
    package var inFlight: [RecordsInFlight] {
        core.inFlight.counts.map { stream, count in
            RecordsInFlight(stream: stream, after: max(0, newest(stream)), count: count)
        }
    }

    /// Enters what of it did not reach this database, in which a later start of the program has it.
    package func note(lost records: RecordsInFlight, from: Stamp, to: Stamp) {
        let landed = newest(records.stream) - records.after
        // Below zero: this database took the place of a damaged one meanwhile, and got what was in memory.
        guard landed >= 0, landed < records.count else { return }
        note(Loss(.dropped, records.stream, records: records.count - landed, from: from, to: to))
    }
}
