// The keys of schedules, and the formats of their values.
package import Configuration
import Host

/// The schedules of all sources, and the position that their sun follows without a GNSS receiver.
///
/// Apart from the sources' own settings, because a change of it restarts no source that stays open.
package struct ScheduleSettings: Sendable, Equatable {
    package var audioWindows: [ScheduleWindow] = []
    package var audioDuty: DutyCycle?
    package var beaconWindows: [ScheduleWindow] = []
    /// Minutes east of UTC.
    package var offset = 0
    /// `location.fixed`.
    package var fixed: SitePosition?

    package init() {}

    package var audio: Schedule {
        Schedule(windows: audioWindows, duty: audioDuty, offset: offset)
    }

    package var beacons: Schedule { Schedule(windows: beaconWindows, offset: offset) }
}

extension ValueFormat where Value == [ScheduleWindow] {
    /// An array of windows; in the environment also text split at commas.
    package static let windows: Self = {
        let texts = ValueFormat<[String]>.list(
            "windows of HH:MM, dawn, sunrise, noon, sunset, dusk, such as [\"sunrise-1h..22:00\"]"
        ) { text in
            if case .failure(let mismatch) = ScheduleWindow.parse(text) {
                mismatch.message
            } else {
                nil
            }
        }
        return ValueFormat(
            allowed: texts.allowed,
            read: { literal in
                texts.read(literal).flatMap { texts in
                    guard texts.count <= 24 else {
                        return .mismatch("found \(texts.count) windows; at most 24 are allowed")
                    }
                    return .success(texts.compactMap { try? ScheduleWindow.parse($0).get() })
                }
            },
            written: { texts.written($0.map(\.text)) }
        )
    }()
}

extension ValueFormat where Value == DutyCycle {
    package static let duty = ValueFormat.text(
        "ON/PERIOD such as 1m/10m, from 1s to 24h (number and unit: ms, s, m, h, d)",
        parse: { DutyCycle.parse($0) },
        written: \.text
    )
}

extension DutyCycle {
    /// The example in the documentation.
    package static let example = Self(on: 60_000, period: 600_000)
}

extension ValueFormat where Value == Int {
    /// Minutes east of UTC.
    package static let utcOffset = ValueFormat.text(
        "UTC, or an offset such as +02:00",
        no: "offset from UTC",
        parse: { minutes(ofOffset: $0) },
        written: offsetText
    )
}

extension ValueFormat where Value == SitePosition {
    package static let position = ValueFormat.text(
        "latitude and longitude in degrees, such as 46.46,6.84",
        no: "position",
        parse: { SitePosition($0) },
        written: \.text
    )
}
