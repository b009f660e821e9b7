// Splits a batch by day into compressed objects for the bucket.
import Host
import HTTP
import ServerArchive
import ServerBase

/// The objects of one batch, before they are sent: gzipped lines, one object per day.
struct DayObjects {
    /// The maximum number of days.
    ///
    /// Each day needs 300 kB; a gateway halves a batch that has more days.
    static let maxDays = 32

    private var days: [String: DayObject] = [:]
    /// True if some records have audio, which goes into separate objects.
    private(set) var hasAudio = false

    /// Reads the records once; throws an HTTPError for a batch of too many days.
    init(_ batch: IncomingBatch, _ body: ByteView, folder: String) throws {
        guard batch.dates.count <= Self.maxDays else {
            let reason = "records of more than \(Self.maxDays) days in one batch"
            throw HTTPError(status: 413, reason: reason)
        }
        for date in batch.dates { days[date] = DayObject(folder: folder) }
        var (found, count) = (false, 0)
        try batch.forEachRecord(of: body) { record in
            guard let day = days[record.time.date] else { return }
            count += 1
            if record.audio != nil { found = true }
            try record.writeLine(of: body, for: .bucket) { try day.append($0) }
            try day.append([10])
        }
        mustHold(count == batch.count, "the objects of a batch have all of its records")
        for day in days.values { try day.finish() }
        hasAudio = found
    }

    /// The lines of each day, largest first, so that one too large for the store fails before the
    /// rest.
    var inOrder: [(date: String, lines: Spool)] {
        days.map { ($0.key, $0.value.lines) }.sorted { ($1.1.count, $0.0) < ($0.1.count, $1.0) }
    }
}

/// The lines of one day.
private final class DayObject {
    private static let piece = 16 << 10

    let lines: Spool
    private var waiting: [UInt8] = []
    /// Always gzip, the gateways' default: a retry must not change the object's name.
    private var compressor = PieceCompressor(BucketStore.compression)

    init(folder: String) { lines = Spool(folder: folder, memory: 16 << 10) }

    func append(_ bytes: some Collection<UInt8>) throws {
        waiting += bytes
        if waiting.count >= Self.piece { try compress() }
    }

    func finish() throws { try compress(isLast: true) }

    private func compress(isLast: Bool = false) throws {
        try compressor.receive(waiting, isLast: isLast).withUnsafeBytes(lines.append)
        waiting.removeAll(keepingCapacity: !isLast)
        if isLast { compressor = PieceCompressor(.none) }
    }
}
