// The health that a device reports about itself (waypost-protocol(7), `waypost_health`).
import Host
import ServerBase

/// A device's newest health record, as far as pages and alerts use it.
///
/// All values come from the network: any may be missing, of a wrong type, or absurd.
package struct ReportedHealth: Sendable {
    /// The stream's name, unless the device's configuration changes it.
    private static let usualStream = "waypost_health"
    private static let levels: [String: DeviceLevel] = [
        "healthy": .healthy, "degraded": .degraded, "critical": .critical,
    ]
    /// The maximum number of reasons that are shown; the rest are counted.
    private static let maxReasons = 10
    private static let longestReason = 300
    /// A larger count, or a larger sum of counts, is shown as this.
    private static let maxRecords: Int64 = 1_000_000_000_000_000

    package let stream: String
    /// Milliseconds since 1970.
    package let time: Int64
    package let level: DeviceLevel
    package let reasons: [String]
    /// Pending records of all streams.
    let pending: Int64?
    /// Milliseconds since 1970.
    package let oldestPending: Int64?
    /// The time of sound that the device holds, for nobody has asked for it; nil for none.
    let held: ClosedRange<Int64>?
    /// Records of all streams lost in the last day.
    package let lost: Int64?
    let hasUndervoltage: Bool?
    /// Further values with their names, for people.
    package let details: [(name: String, text: String)]

    /// Finds the newest health record among the newest records of a device's streams.
    package init?(_ latest: [String: (time: Int64, line: String)]) {
        for (stream, record) in latest.sorted(by: { $0.value.time > $1.value.time }) {
            let health = Array(record.line.utf8).withUnsafeBytes { bytes in
                RecordLine(ByteView(bytes, isMapped: false)).flatMap { line in
                    stream == Self.usualStream || line["uptime_s"] != nil
                        ? ReportedHealth(line, stream: stream, time: record.time) : nil
                }
            }
            guard let health else { continue }
            self = health
            return
        }
        return nil
    }

    /// Nil without a known state.
    private init?(_ line: RecordLine, stream: String, time: Int64) {
        guard let level = line.text("state").flatMap({ Self.levels[$0] }) else { return nil }
        (self.stream, self.time, self.level) = (stream, time, level)
        let all = line.texts("reasons").map { printable($0, limit: Self.longestReason) }
        let more = all.count - Self.maxReasons
        reasons = all.prefix(Self.maxReasons) + (more > 0 ? ["\(more) more reasons"] : [])
        pending = Self.total(line, "pending")
        oldestPending = line.time("oldest_pending_at")
        let ends = [line.time("held_from"), line.time("held_to")].compactMap { $0 }
        held = ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : nil
        lost = Self.total(line, "lost_24h")
        hasUndervoltage = line["undervoltage"].flatMap { line.value($0).flag }
        details = Self.details(line)
    }

    /// Returns the sum of an object's counts; nil if the member is not an object.
    private static func total(_ line: RecordLine, _ name: String) -> Int64? {
        guard let counts = line[name].flatMap(line.object) else { return nil }
        return counts.members.reduce(0) { sum, member in
            let count = counts.value(member.value).number ?? 0
            guard count > 0 else { return sum }
            return min(maxRecords, sum + Int64(min(count, Double(maxRecords))))
        }
    }

    /// Describes the sound that the device holds; nil for none.
    private static func held(_ line: RecordLine) -> String? {
        guard let chunks = line.number("held"), chunks >= 1, let from = line.time("held_from"),
            let to = line.time("held_to")
        else { return nil }
        let count = Words.count(Int64(min(chunks, 1e15)), "chunk", "chunks")
        return "\(count), \(Words.minute(from)) to \(Words.minute(to)) UTC"
    }

    private static func details(_ line: RecordLine) -> [(name: String, text: String)] {
        let bytes = line.number("memory_available_bytes").map { Words.bytes($0) }
        let next = line.time("next_sync_at").map { Words.minute($0) + " UTC" }
        let up = line.number("uptime_s").map { Words.span(seconds: Int64(min(max($0, 0), 1e12))) }
        let all = [
            ("Running for", up), ("Next sync", next), ("Held sound", held(line)),
            ("Processor", line.number("cpu_temperature_c").map { Words.decimal($0, 1) + " °C" }),
            ("Load", line.number("load_1m").map { Words.decimal($0, 2) }),
            ("Memory available", bytes),
            ("Wi-Fi", line.number("wifi_rssi_dbm").map { Words.decimal($0, 0) + " dBm" }),
        ]
        return all.compactMap { name, text in text.map { (name, $0) } }
    }
}

extension RecordLine {
    /// Returns the strings of a member that is an array; leaves out others and long ones.
    fileprivate func texts(_ name: String) -> [String] {
        guard let array = self[name], begins(array, "[") else { return [] }
        var text = BodyJSON(bytes, at: array.lowerBound)
        var texts: [String] = []
        try? text.array { text in
            let value = try text.value()
            if let string = self.value(value).text { texts.append(string) }
        }
        return texts
    }
}

extension DeviceView {
    /// The records lost in the last day: as the device counts them, or else as its events do.
    package var lost: Int64 { health?.lost ?? facts.lost }

    /// The readings of a fuel gauge, and whether the board reports undervoltage.
    package var supply: Vitals.Reading? {
        guard let health, let isLow = health.hasUndervoltage else { return vitals.supply }
        guard var supply = vitals.supply else {
            return Vitals.Reading(text: isLow ? "undervoltage" : "ok", time: health.time)
        }
        if isLow { supply.text += ", undervoltage" }
        return supply
    }

    /// The pending records of its last health record, however old that is; nil if there were none.
    package var lastWaiting: (words: String, time: Int64)? {
        guard let last = facts.health, let pending = last.pending, pending > 0 else { return nil }
        return (Words.count(pending, "record", "records"), last.time)
    }

    /// The pending records that it reports, or the age of the newest record at the last contact.
    package var waiting: String? {
        if let pending = health?.pending {
            return pending == 0 ? nil : Words.count(pending, "record", "records")
        }
        if let pending = vitals.pending { return pending.text == "0" ? nil : pending.text }
        guard let behind, behind > 2 * interval + 60 else { return nil }
        return "\(Words.span(seconds: behind)) behind"
    }
}
