// Surveys as text for people: a table of 80 columns with a picture per beacon.
import Host
import JSON
import Queue
import Records

/// Renders surveys as text.
package enum SurveyScreen {
    /// The number of beacons that fit on a terminal.
    private static let rows = 16
    /// The scale of the picture in dBm.
    private static let scale = -100.0 ... -30.0
    private static let width = 22

    /// Lists the open survey and the finished ones.
    package static func list(_ open: SurveyReply, _ records: [SurveyRecord]) -> String {
        var lines: [String] = []
        if let name = open.open {
            lines.append("open: \(name), since \(minute(of: open.startedAt ?? "")) UTC")
        }
        guard !records.isEmpty else {
            return lines.isEmpty ? "no surveys\n" : lines[0] + "\n"
        }
        lines.append(
            "NAME                      START (UTC)       MINUTES  BEACONS  SIGHTINGS   METRES"
        )
        for record in records {
            let minutes = minutes(record)
            lines.append(
                record.name.column(26) + minute(of: record.start).column(18)
                    + minutes.rightColumn(7)
                    + "\(record.beacons.count)".rightColumn(9)
                    + "\(record.sightings)".rightColumn(11)
                    + "\(Int(record.track.distance ?? 0))".rightColumn(9)
            )
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Shows one survey: each beacon with its sightings and signal levels.
    package static func show(_ record: SurveyRecord) -> String {
        var lines = [
            record.name.blanked,
            "\(period(record.start, record.end)), "
                + "\(counted(record.sightings, "sighting")) of \(counted(record.beacons.count, "beacon")), "
                + "\(Int(record.track.distance ?? 0)) m, \(counted(record.track.fixes, "fix", "fixes"))",
        ]
        if let missing = record.missingSightings {
            lines.append(
                "\(counted(missing, "sighting")) missing: no space was left, or a database was damaged"
            )
        }
        lines.append("")
        lines.append("BEACON                       COUNT MEDIAN   SD   GAP S  -100 dBm         -30")
        lines += record.beacons.prefix(rows).map(row)
        let more = record.beacons.count - rows
        if more > 0 { lines.append("and \(counted(more, "beacon")) heard less; `--json` has all") }
        lines.append("")
        lines.append("- weakest to strongest, = within a standard deviation of the mean, | median")
        return lines.joined(separator: "\n") + "\n"
    }

    private static func row(_ beacon: SurveyRecord.Beacon) -> String {
        let level = { (value: Double?) in value.map { "\(Int($0.rounded()))" } ?? "-" }
        return short(beacon.beaconId, 26).column(26) + "\(beacon.count)".rightColumn(8)
            + level(beacon.rssiMedian).rightColumn(7) + level(beacon.rssiStddev).rightColumn(5)
            + level(beacon.longestGap).rightColumn(8) + "  " + picture(beacon)
    }

    /// Draws one beacon's levels: weakest to strongest, standard deviation, median.
    static func picture(_ beacon: SurveyRecord.Beacon) -> String {
        guard let low = beacon.rssiMin, let high = beacon.rssiMax, let mean = beacon.rssiMean,
            let spread = beacon.rssiStddev, let median = beacon.rssiMedian
        else { return "" }
        var cells = [Character](repeating: " ", count: width)
        for cell in column(Double(low))...max(column(Double(low)), column(Double(high))) {
            cells[cell] = "-"
        }
        for cell in column(mean - spread)...column(mean + spread) { cells[cell] = "=" }
        cells[column(median)] = "|"
        return String(cells)
    }

    private static func column(_ level: Double) -> Int {
        let share = (level - scale.lowerBound) / (scale.upperBound - scale.lowerBound)
        return min(width - 1, max(0, Int(share * Double(width))))
    }

    private static func minutes(_ record: SurveyRecord) -> String {
        guard let start = WallTime(rfc3339: record.start), let end = WallTime(rfc3339: record.end)
        else { return "-" }
        return "\((end.milliseconds - start.milliseconds + 30_000) / 60_000)"
    }

    /// Shortens an id in its middle: the ids of one owner differ at their end.
    private static func short(_ id: String, _ width: Int) -> String {
        id.count < width ? id : id.prefix(8) + "…" + id.suffix(width - 11)
    }
}

/// Surveys as JSON for scripts.
package enum SurveyList {
    /// Returns `{"open":{"name":…,"started_at":…}|null,"surveys":[…]}`, the records as on the wire.
    package static func json(_ open: SurveyReply, _ records: [SurveyRecord]) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.key("open")
            if let name = open.open {
                json.object {
                    $0.field("name", name)
                    $0.field("started_at", open.startedAt ?? "")
                }
            } else {
                json.raw("null")
            }
            json.key("surveys")
            json.array { json in
                for record in records { json.raw(String(decoding: record.json, as: UTF8.self)) }
            }
        }
        return json.bytes
    }
}
