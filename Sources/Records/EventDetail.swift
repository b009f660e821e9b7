// An event's detail as JSON text, which is how it is stored and sent.
import Host

/// Writes the `detail` object of an event.
package enum EventDetail {
    package static func encode(_ detail: [(key: String, value: EventValue)]) -> String {
        var json = JSONWriter()
        json.object {
            for (key, value) in detail {
                switch value {
                case .text(let text): $0.field(key, text)
                case .integer(let integer): $0.field(key, integer)
                case .number(let number): $0.field(key, number)
                case .time(let time): $0.field(key, time)
                case .seen(let time): $0.field(key, "\(time.rfc3339.dropLast())\(seenZone)")
                case .known(let time): $0.field(key, "\(time.rfc3339.dropLast())\(knownZone)")
                }
            }
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }

    /// How a known time ends where it is stored, and one of the event's own clock; they are sent with a Z, as all times.
    private static let knownZone = "+00:00"
    private static let seenZone = "-00:00"
    /// Spans of time, told by the clock that the event saw.
    private static let spans = ["from", "to", "since", "until"].map { Array("\"\($0)\":\"".utf8) }

    /// The text as it is sent: its spans are put right with the event, which saw the clock at `seen`.
    ///
    /// Where it is not said by which clock a time is told: one that is nearer to the right one was known better when the
    /// event was made, unless the span ends with the event, for then all of it is told by one clock.
    static func dated(_ text: String, seen: WallTime, right: WallTime) -> String {
        var bytes = Array(text.utf8)
        let found = spans.compactMap { field in
            bytes.indices.first { bytes[$0...].starts(with: field) }.map { $0 + field.count }
        }
        let times = found.map {
            String(decoding: bytes[$0...].prefix { $0 != quote }, as: UTF8.self)
        }
        let endsHere = times.contains { WallTime(rfc3339: $0) == seen }
        // From behind, so that the places of those before stay.
        for (start, old) in zip(found, times).sorted(by: { $0.0 > $1.0 }) {
            guard let time = WallTime(rfc3339: old) else { continue }
            let isKnown =
                old.hasSuffix(knownZone)
                || !old.hasSuffix(seenZone) && !endsHere
                    && time.distance(to: seen) >= time.distance(to: right)
            let shift = isKnown ? 0 : right.milliseconds &- seen.milliseconds
            let new = WallTime(milliseconds: time.milliseconds &+ shift).rfc3339
            bytes.replaceSubrange(start..<(start + old.utf8.count), with: new.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let quote = UInt8(ascii: "\"")
}

extension WallTime {
    fileprivate func distance(to other: Self) -> UInt64 {
        (milliseconds &- other.milliseconds).magnitude
    }
}
