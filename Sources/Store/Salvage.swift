// Reading what can be read of a damaged database, into the queue that took its place.
internal import Host

/// One record as it was in the damaged database.
enum SalvagedRecord: Sendable {
    case fix(Stored<Fix>)
    case sighting(Stored<Sighting>)
    case event(Stored<Stamp>, kind: String, source: String, detail: String)
    /// `sequence` 0: sound that no chunk had yet.
    case chunk(Stored<Chunk>, segments: [[UInt8]])

    var sequence: Int64 {
        switch self {
        case .fix(let stored): stored.sequence
        case .sighting(let stored): stored.sequence
        case .event(let stored, _, _, _): stored.sequence
        case .chunk(let stored, _): stored.sequence
        }
    }
}

/// Takes over the records of a database that was set aside, as far as they were not uploaded.
///
/// Goes page by page, each a transaction that also notes how far it is: a crash in between repeats nothing.
struct Salvage {
    private static let order: [Stream] = [.location, .events, .beacons, .audio]

    let path: String
    let core: QueueCore
    let stop: StopSignal

    func run() {
        let path = path
        do {
            let isDone = try core.perform { try $0.isSalvaged(path) }
            guard !isDone else { return }
            DamagedFile.extend(path)
            guard let reader = try? Reader(salvaging: path) else {
                return try finish(isReadable: false)
            }
            let ids = reader.recordIDs
            let old = OldDatabase(reader: reader)
            let boots = old.boots
            let clock = old.clock
            try core.perform { try $0.adoptClock(boots: boots, clock: clock, from: path) }
            for stream in Self.order {
                try take(stream, from: old, ids: ids, boots: boots)
                if stop.isRaised { return }
            }
            try finish(isReadable: true)
        } catch {
            // The new database refuses for now; the next start goes on where this one ended.
        }
    }

    private func take(
        _ stream: Stream,
        from old: OldDatabase,
        ids: RecordIDs,
        boots: [Int64: String]
    ) throws {
        let path = path
        let known = try core.perform { try $0.salvagedThrough(path, stream) }
        var through = known
        let plan = old.pages(stream, after: known)
        var lostInARow = 0
        for page in plan.pages {
            if stop.isRaised { return }
            let (records, lost) = old.read(stream, page, settled: plan.settled)
            through = page.upperBound
            // Where the end of the table is not known, what cannot be read may never have been.
            lostInARow = records.isEmpty ? lostInARow + 1 : 0
            if !plan.isEndKnown, lostInARow >= 8 { break }
            let end = through
            guard !records.isEmpty || lost > 0 else { continue }
            try core.perform {
                try $0.adopt(records, stream, ids: ids, boots: boots)
                try $0.noteSalvaged(path, stream, through: end, records: records.count, lost: lost)
            }
        }
        if stream == .audio, let tail = old.soundWithoutChunk {
            let end = through + 1
            guard known < end else { return }
            try core.perform {
                try $0.adopt([tail], stream, ids: nil, boots: boots)
                try $0.noteSalvaged(path, stream, through: end, records: 1, lost: 0)
            }
        }
    }

    private func finish(isReadable: Bool) throws {
        let path = path
        try core.perform { try $0.finishSalvage(path, isReadable: isReadable) }
    }
}

/// What can still be asked of a damaged database; every question may fail.
struct OldDatabase {
    private static let pageSize: Int64 = 512

    let reader: Reader

    /// Ranges of rows to read.
    struct Plan {
        var pages: [ClosedRange<Int64>] = []
        var isEndKnown = true
        /// Rows up to here may be gone by right.
        var settled = Int64.max
    }

    /// The ids of its boots by row.
    var boots: [Int64: String] { (try? reader.boots()) ?? [:] }

    var clock: [ClockMap.Entry] { (try? reader.clockEntries()) ?? [] }

    /// What of a stream was not uploaded, beyond the rows that are known already.
    func pages(_ stream: Stream, after known: Int64) -> Plan {
        let batches = try? reader.uploadedRanges(stream)
        // Without ids and batches nobody could tell what the server has: rather lost than twice.
        guard reader.hasIDs || batches != nil else { return Plan() }
        guard let (bounds, isEndKnown) = reader.bounds(stream, known: batches?.last?.upperBound)
        else { return Plan() }
        let settled = (try? reader.settled(stream)) ?? .max
        let size = stream == .audio ? 1 : Self.pageSize
        var pages: [ClosedRange<Int64>] = []
        var next = max(bounds.lowerBound, known + 1)
        var uploaded = (batches ?? [])[...]
        while next <= bounds.upperBound {
            while let first = uploaded.first, first.upperBound < next { uploaded.removeFirst() }
            if let first = uploaded.first, first.contains(next) {
                next = first.upperBound + 1
                continue
            }
            let last = min(
                bounds.upperBound,
                next + size - 1,
                (uploaded.first?.lowerBound ?? .max) - 1
            )
            pages.append(next...last)
            next = last + 1
        }
        return Plan(pages: pages, isEndKnown: isEndKnown, settled: settled)
    }

    /// The records of a page, and how many of its rows could not be read.
    func read(
        _ stream: Stream,
        _ page: ClosedRange<Int64>,
        settled: Int64
    ) -> ([SalvagedRecord], lost: Int) {
        if let records = try? reader.salvage(stream, page) {
            // A damaged tree may leave rows out without an error.
            let isWhole = page.lowerBound > settled
            return (records, isWhole ? page.count - records.count : 0)
        }
        guard page.count > 1 else { return ([], 1) }
        let middle = page.lowerBound + Int64(page.count / 2) - 1
        if page.count == Int(Self.pageSize), isDead(stream, page, middle) {
            return ([], page.count)
        }
        let (front, lostFront) = read(stream, page.lowerBound...middle, settled: settled)
        let (back, lostBack) = read(stream, (middle + 1)...page.upperBound, settled: settled)
        return (front + back, lostFront + lostBack)
    }

    /// Three rows of a page tell whether it is worth trying each.
    private func isDead(_ stream: Stream, _ page: ClosedRange<Int64>, _ middle: Int64) -> Bool {
        [page.lowerBound, middle, page.upperBound].allSatisfy {
            (try? reader.salvage(stream, $0...$0)) == nil
        }
    }

    var soundWithoutChunk: SalvagedRecord? { (try? reader.soundWithoutChunk()) ?? nil }
}
