// A record on its way to the disk.
import Host
import Records

/// A record, or a boundary of an audio run, from acceptance until it is committed.
enum QueuedRecord: Sendable {
    case sighting(Sighting)
    /// A record of a plain stream.
    case row(PlainRow)
    /// Records whose sender waits until they are on disk.
    ///
    /// The memos, texts by their names, are stored in the same transaction.
    case put([PlainRow], [String: String], @Sendable ((any Error)?) -> Void)
    /// A fix; stored while a survey is open.
    case place(Fix)
    case begin(AudioRun)
    case segment(Segment)
    /// Ends a run that had `count` segments.
    case end(Int64, count: Int64, at: Stamp)

    /// How many records memory holds for it.
    var count: Int {
        switch self {
        case .sighting, .row, .place, .segment: 1
        case .put(let rows, _, _): rows.count
        case .begin, .end: 0
        }
    }

    /// The losses if it is dropped: the record, and the loss that the record itself reports.
    func losses(_ kind: LossKind = .dropped) -> [Loss] {
        guard case .row(let row) = self else { return [loss(kind)].compactMap { $0 } }
        return [loss(kind), row.loss].compactMap { $0 }
    }

    /// The loss of the record; nil for `put`, whose sender gets an error, and for audio, where the
    /// writer detects the gap.
    func loss(_ kind: LossKind = .dropped) -> Loss? {
        switch self {
        case .sighting(let sighting):
            Loss(kind, .beacons, records: 1, from: sighting.stamp, to: sighting.stamp)
        case .row(let row): Loss(kind, row.stream, records: 1, from: row.stamp, to: row.stamp)
        case .put, .place, .begin, .segment, .end: nil
        }
    }
}
