// Minimum, mean and maximum of quantities in intervals, from the index or the records.
import Host
import SQLite
import ServerBase
import ServerIndex

/// A stream's quantity.
struct SeriesName: Hashable {
    var stream: String
    var quantity: QuantityName

    var order: (String, String, String) { (stream, quantity.beacon, quantity.key) }
}

/// Collects the series of a device in a span.
struct SeriesCollection {
    /// The maximum number of series in an answer.
    private static let maximum = 100
    /// Bytes of records that are read for intervals shorter than the index has.
    private static let budget: Int64 = 24 << 20
    /// The maximum number of files; a year has 366 of each stream.
    private static let maxFiles = 40_000

    let from: Int64
    let to: Int64
    let beacon: String?
    let key: String?
    /// Milliseconds of an interval; intervals begin at its multiples since 1970.
    private(set) var step: Int64
    /// True if the records were read, false for the index.
    private(set) var isOfRecords = false
    /// True if series were left out.
    private(set) var isCut = false
    /// The place of each series in `intervals`.
    private var places: [SeriesName: Int] = [:]
    private var intervals: [[SeriesInterval]] = []

    /// `points`: the most intervals.
    init(_ from: Int64, _ to: Int64, points: Int64, beacon: String?, key: String?) {
        (self.from, self.to, self.beacon, self.key) = (from, to, beacon, key)
        // One less, because the first and the last interval may be cut.
        let least = (to - from + points - 2) / (points - 1)
        let days = (least + Day.milliseconds - 1) / Day.milliseconds
        step = Self.seconds.map { $0 * 1000 }.first { $0 >= least } ?? days * Day.milliseconds
    }

    /// The lengths of intervals below a day, which divide hours or days; from ten minutes on of the
    /// index.
    private static let seconds: [Int64] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200,
    ]

    private var first: Int64 { Self.floor(from, step) }

    private var count: Int { Int(Self.floor(to - 1, step) - first + 1) }

    private static func floor(_ time: Int64, _ step: Int64) -> Int64 {
        time / step - (time % step < 0 ? 1 : 0)
    }

    /// The beginning of an interval, milliseconds since 1970.
    func time(_ interval: Int) -> Int64 { (first + Int64(interval)) * step }

    /// Reads the series of a device's streams.
    mutating func read(
        _ device: String,
        _ streams: Set<String>,
        _ reader: FleetReader,
        in directory: String
    )
        throws
    {
        let span = TimeSpan(from: from, to: to)
        let files = try reader.files(of: device, span, streams, maximum: Self.maxFiles)
        if step < IndexedPart.slot {
            let extents = try files.map { try reader.extent(of: $0, in: span) }
            if extents.reduce(0, { $0 + Int64($1?.count ?? 0) }) <= Self.budget {
                isOfRecords = true
                for case (let file, let extent?) in zip(files, extents) {
                    try read(file, extent, "\(directory)/\(file.path(of: device))")
                }
                return
            }
        }
        step = max(step, IndexedPart.slot)
        for file in files { try read(file, reader) }
    }

    /// Adds the records of a part of a file.
    private mutating func read(_ file: IndexedFile, _ extent: Range<Int64>, _ path: String) throws {
        guard let lines = try LineFile.open(path) else { return }
        let end = min(extent.upperBound, try lines.size())
        guard extent.lowerBound < end else { return }
        try lines.forEachLine(from: extent.lowerBound, to: end) { line in
            guard let line, let time = line.identity?.time, time >= from, time < to else { return }
            let place = Int(Self.floor(time, step) - first)
            RecordNumbers.each(in: line) { quantity, value in
                let name = SeriesName(stream: file.stream, quantity: quantity)
                guard let series = self.place(of: name) else { return }
                intervals[series][place].add(1, value, value, value)
            }
        }
    }

    /// Adds the rows of the index for a file.
    private mutating func read(_ file: IndexedFile, _ reader: FleetReader) throws {
        let series = try reader.database.prepare(
            """
            SELECT id, beacon, key FROM series WHERE file=?1 AND beacon=coalesce(?2, beacon) AND key=coalesce(?3, key)
            """,
            file.id,
            beacon,
            key
        )
        var found: [Int64: Int] = [:]
        while try series.step() {
            let quantity = QuantityName(beacon: series.text(1), key: series.text(2))
            let name = SeriesName(stream: file.stream, quantity: quantity)
            found[series.required(0)] = self.place(of: name)
        }
        guard !found.isEmpty else { return }
        let row = try reader.database.prepare(
            """
            SELECT series, slot, records, total, low, high FROM readings WHERE file=?1 AND slot >= ?2 AND slot <= ?3
            AND series IN (SELECT id FROM series WHERE file=?1 AND beacon=coalesce(?4, beacon) AND key=coalesce(?5, key))
            """,
            file.id,
            IndexedPart.slot(of: from),
            IndexedPart.slot(of: to - 1),
            beacon,
            key
        )
        while try row.step() {
            let place = Int(Self.floor(row.required(1) * IndexedPart.slot, step) - first)
            guard let series = found[row.required(0)], place >= 0, place < count else { continue }
            let (total, low, high) = (row.number(3) ?? 0, row.number(4) ?? 0, row.number(5) ?? 0)
            intervals[series][place].add(row.required(2), total, low, high)
        }
    }

    /// Returns the place of a series; nil if it is not asked for or there is no room for it.
    private mutating func place(of name: SeriesName) -> Int? {
        if let place = places[name] { return place }
        guard beacon == nil || beacon == name.quantity.beacon,
            key == nil || key == name.quantity.key
        else { return nil }
        guard places.count < Self.maximum else {
            isCut = true
            return nil
        }
        places[name] = intervals.count
        intervals.append(Array(repeating: SeriesInterval(), count: count))
        return intervals.count - 1
    }

    /// In order of stream, beacon and key.
    var sorted: [(name: SeriesName, intervals: [SeriesInterval])] {
        places.sorted { $0.key.order < $1.key.order }.map { ($0.key, intervals[$0.value]) }
    }
}
