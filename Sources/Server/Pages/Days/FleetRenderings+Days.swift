// Answers requests about the days of one device or of all, as a page and as CSV.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    private static let (maxStreams, maxDays, maxRows) = (12, 366, 200_000)
    private static let columns =
        ["device", "stream", "date", "state"] + DayCoverage.states.map { "\($0.rawValue)_h" }
        + ["reason", "records_made", "records_stored", "missing"]

    /// Returns the days of a device; without an index that can be read, those of none.
    func calendar(_ device: DeviceView, _ days: [Day], _ reader: FleetReader?, _ now: Int64)
        -> CoverageCalendar?
    {
        reader.flatMap {
            try? CoverageCalendar($0, of: device, days, maximum: Self.maxStreams, at: now)
        }
    }

    /// Returns the days until now from `from` to `to`, of a `year`, or else the last ones.
    func days(_ query: [String: String], usual: Int, at now: Int64) throws -> [Day] {
        func day(_ name: String, _ end: String = "") throws -> Day? {
            guard let text = query[name] else { return nil }
            if let day = Day(text + end) { return day }
            throw HTTPError(status: 400, reason: "\(name) has to be as in 2026-11-21")
        }
        let last = try day("to") ?? day("year", "-12-31")
        let end = min(last?.start ?? now, now)
        let usual = Day(of: end - Int64(usual - 1) * Day.milliseconds)
        let first = try day("from") ?? day("year", "-01-01") ?? usual
        let days = stride(from: first.start, through: end, by: Int(Day.milliseconds))
            .prefix(Self.maxDays + 1).map { Day(of: $0) }
        guard (1...Self.maxDays).contains(days.count) else {
            let reason = "from has to be before to and now, by \(Self.maxDays) days at most"
            throw HTTPError(status: 400, reason: reason)
        }
        return days
    }

    func daysPage(_ id: String, _ head: RequestHead, at now: Int64) throws -> HTML {
        let (reader, note) = fleet.openIndex()
        let device = try view(id, reader, at: now)
        let days = try days(head.query, usual: 365, at: now)
        return DaysPage(
            device: id,
            names: known,
            days: days,
            rows: calendar(device, days, reader, now)?.rows ?? [],
            now: now,
            note: note
        ).html()
    }

    /// Answers with the days of a device, or of all: nil.
    func daysFile(_ id: String?, _ head: RequestHead, at now: Int64) throws -> HTTPAnswer {
        let days = try days(head.query, usual: id == nil ? 14 : 365, at: now)
        let (reader, _) = fleet.openIndex()
        let devices =
            try id.map { [try view($0, reader, at: now)] } ?? fleet.devices(reader, at: now)
        var (csv, rows) = (Self.columns.joined(separator: ",") + "\r\n", 0)
        for device in devices.sorted(by: { $0.id < $1.id }) {
            for row in calendar(device, days, reader, now)?.rows ?? [] {
                for day in days.compactMap({ row.days[$0.name] }) {
                    csv += Self.line(day, device.id, row.stream)
                    rows += 1
                }
            }
            guard rows <= Self.maxRows else {
                let reason = "more than \(Self.maxRows) rows: choose a shorter time, from and to"
                throw HTTPError(status: 400, reason: reason)
            }
        }
        let name = "\(id ?? "devices")-\(days[0].name)-days.csv"
        return HTTPAnswer(download: name, type: "text/csv; charset=utf-8", Array(csv.utf8))
    }

    private static func line(_ day: DayCoverage, _ device: String, _ stream: String) -> String {
        let hasEffort = day.hasEffort
        let hours = day.lengths.map { hasEffort ? Words.decimal(Double($0) / 3_600_000, 3) : "" }
        let cells =
            [device, stream, day.day.name, day.state.rawValue] + hours
            + [day.reason, hasEffort ? "\(day.made)" : "", "\(day.stored)"]
            + [hasEffort ? "\(day.absence == nil ? 0 : day.shortage)" : ""]
        return cells.map(csvCell).joined(separator: ",") + "\r\n"
    }
}
