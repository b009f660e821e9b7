// The read API's series, for plots.
import Glibc
import Host
import JSON
import ServerBase
import ServerIndex
import ServerWeb

extension ReadAPI {
    /// An hour more than 366 days: those of a page may have one more change of the clock.
    private static let longestSpan = 366 * Day.milliseconds + 3_600_000

    func series(_ device: String, _ head: RequestHead) throws -> HTTPAnswer {
        let query = try APIQuery(head, of: .series)
        let span = try query.span()
        let to = span.to ?? max(now, (span.from ?? now) + 1)
        let from = span.from ?? to - Day.milliseconds
        guard to - from <= Self.longestSpan else {
            throw HTTPError(status: 400, reason: "from and to are more than 366 days apart")
        }
        let (usual, range) = (APIParameter.usualPoints, 2...APIParameter.maxPoints)
        var collection = SeriesCollection(
            from,
            to,
            points: try query.integer(.points, usual: usual, in: range),
            beacon: query.text(.beacon),
            key: query.text(.key)
        )
        let (reader, note) = try open()
        let streams = try reader.streams(query, of: device) { $0.hasReadings }
        try collection.read(device, streams, reader, in: looks.directory)
        let bytes = query.isCSV ? collection.csv() : collection.json(device, note: note)
        return HTTPAnswer(read: bytes, isCSV: query.isCSV, head)
    }
}

extension SeriesCollection {
    func csv() -> [UInt8] {
        var table = APITable(.series, isCSV: true, limit: .max)
        for (name, intervals) in sorted {
            let beacon = name.quantity.beacon
            for (index, interval) in intervals.enumerated() where interval.records > 0 {
                table.add([
                    .time(time(index)), .text(name.stream), beacon.isEmpty ? .none : .text(beacon),
                    .text(name.quantity.key), .integer(interval.records), .number(interval.low),
                    .number(interval.mean), .number(interval.high),
                ])
            }
        }
        return table.bytes(next: nil, note: nil)
    }

    func json(_ device: String, note: String?) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.field("device", device)
            json.field("from", WallTime(milliseconds: from))
            json.field("to", WallTime(milliseconds: to))
            json.key("step_s")
            json.raw((Double(step) / 1000).shortest)
            json.field("source", isOfRecords ? "records" : "index")
            json.field("cut", isCut)
            json.key("series")
            json.array { json in
                for (name, intervals) in sorted { json.object { write(name, intervals, to: &$0) } }
            }
            if let note { json.field("note", note) }
        }
        return json.bytes + [10]
    }

    private func write(_ name: SeriesName, _ intervals: [SeriesInterval], to json: inout JSONWriter)
    {
        json.field("stream", name.stream)
        let (beacon, key) = (name.quantity.beacon, name.quantity.key)
        if !beacon.isEmpty { json.field("beacon", beacon) }
        json.field("key", key)
        let unit = key == QuantityName.strength ? "dBm" : Quantities.split(key).unit
        if !unit.isEmpty { json.field("unit", unit) }
        let filled = intervals.enumerated().filter { $0.element.records > 0 }
        func list(_ key: String, _ value: (Int, SeriesInterval) -> String) {
            json.key(key)
            json.array { for (index, interval) in filled { $0.raw(value(index, interval)) } }
        }
        list("time_ms") { index, _ in "\(time(index))" }
        list("records") { "\($1.records)" }
        list("min") { $1.low.shortest }
        list("mean") { $1.mean.shortest }
        list("max") { $1.high.shortest }
    }
}
