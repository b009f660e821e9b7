// Carries the ledger and traffic of a quarantined database over to the live one.
import Host
import Records
import SQLite

/// A row of another database's ledger; boots are rows there.
struct InheritedLoss: Sendable {
    /// The whole loss; `reported` is the part that events have reported.
    var loss: Loss
    var reported: Int64
    var firstBoot: Int64
    var lastBoot: Int64

    func limited(to records: Int64) -> Self {
        var copy = self
        copy.loss.records = min(loss.records, records)
        copy.reported = min(reported, copy.loss.records)
        return copy
    }
}

extension Reader {
    /// Reads the ledger; `streams` are the streams that this database knows.
    func inheritedLosses(_ streams: [Stream]) throws -> [InheritedLoss] {
        let rows = try query(
            """
            SELECT stream, kind, records, told, first_boot, first_boottime, first_wall,
            last_boot, last_boottime, last_wall FROM losses
            """
        )
        return try rows.compactMap { row in
            let (number, records, reported) = (row.required(0), row.required(2), row.required(3))
            guard let kind = LossKind(rawValue: row.text(1)), records.isPlausible, records > 0,
                let stream = streams.first(where: { Int64($0.number) == number })
            else { return nil }
            let (first, last) = (row.stamp(boottime: 5), row.stamp(boottime: 8))
            return InheritedLoss(
                loss: Loss(kind, stream, records: records, from: first, to: last),
                reported: max(0, min(reported, records)),
                firstBoot: row.required(4),
                lastBoot: row.required(7)
            )
        }
    }
}

extension Writer {
    /// Adds losses to the live ledger; unreported ones are reported by the live database.
    func adopt(losses: [InheritedLoss], boots: [Int64: Int64]) throws {
        for entry in losses {
            guard let stream = try claim(entry.loss.stream) else { continue }
            var reported = entry.loss
            reported.stream = stream
            var unreported = reported
            reported.records = entry.reported
            unreported.records -= entry.reported
            let (first, last) = (boots[entry.firstBoot] ?? boot, boots[entry.lastBoot] ?? boot)
            try recordReported(reported, fromBoot: first, toBoot: last)
            try record(unreported, fromBoot: first, toBoot: last)
        }
    }
}
