// The days of a device's streams, from the index alone.
import Host
package import ServerBase

/// The days of each stream of a device; those of sources come first.
package struct CoverageCalendar {
    package struct Row {
        package let stream: String
        /// "" for a stream of no source.
        let source: String
        /// By date; those before the first one are missing.
        package let days: [String: DayCoverage]
    }

    /// The sources with effort, and the usual names of their streams.
    private static let sources = [
        ("audio", "linux_alsa_audio"), ("beacons", "linux_bluez_beacons"),
        ("location", "linux_gpsd_location"),
    ]

    /// In order, none in the future.
    package let range: [Day]
    package private(set) var rows: [Row] = []

    /// Reads the days of a device; `maximum`: of streams.
    package init(
        _ reader: FleetReader,
        of device: DeviceView,
        _ range: [Day],
        maximum: Int,
        at now: Int64
    ) throws {
        self.range = range
        let read = CoverageReader(reader: reader, device: device, range: range, now: now)
        for (source, usual) in Self.sources {
            let stream = Self.stream(source, usual, device.facts) ?? usual
            let days = try read.days(of: source, stream)
            rows.append(Row(stream: stream, source: source, days: days))
        }
        let known = rows.map(\.stream)
        let others = device.facts.latest.keys.filter {
            !known.contains($0) && !$0.hasPrefix("waypost_")
        }
        for stream in others.sorted().prefix(maximum - rows.count) {
            rows.append(Row(stream: stream, source: "", days: try read.days(of: "", stream)))
        }
        rows.removeAll { $0.days.isEmpty }
    }

    /// Returns the stream of a source: the one with its usual name, or else with its content.
    private static func stream(_ source: String, _ usual: String, _ facts: DeviceFacts) -> String? {
        if facts.latest[usual] != nil { return usual }
        return facts.latest.filter { name, newest in
            switch (source, StreamContent(newest: newest.line)) {
            case ("audio", .audio), ("location", .positions): true
            case ("beacons", .readings): newest.line.contains(text: "\"\(QuantityName.strength)\":")
            default: false
            }
        }.keys.min()
    }

    /// The worst of the sources' days, or of all rows of a device without sources.
    package var worst: [DayCoverage?] {
        let reporting = rows.filter { !$0.source.isEmpty }
        return range.map { day in
            (reporting.isEmpty ? rows : reporting).compactMap { $0.days[day.name] }
                .map { ($0, $0.quality) }.min { $0.1 < $1.1 }?.0
        }
    }
}
