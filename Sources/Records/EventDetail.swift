// An event's detail as JSON text, the form in which it is stored and sent.
import Host
import JSON

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

    /// Stored suffixes that mark a known time and one of the event's clock; both are sent with a Z.
    private static let knownZone = "+00:00"
    private static let seenZone = "-00:00"
    /// The fields that hold spans of time by the clock that the event saw.
    private static let spans = ["from", "to", "since", "until"].map { Array("\"\($0)\":\"".utf8) }

    /// Returns the text to send: its spans are corrected together with the event.
    ///
    /// `seen` is the time the event saw, `right` the correct one. For a time without a mark: one
    /// nearer to `right` was already correct when the event was made. If the span ends with the
    /// event, all of it uses the event's clock.
    static func dated(_ text: String, seen: WallTime, right: WallTime) -> String {
        var bytes = Array(text.utf8)
        let found = spans.compactMap { field in
            bytes.indices.first { bytes[$0...].starts(with: field) }.map { $0 + field.count }
        }
        let times = found.map {
            String(decoding: bytes[$0...].prefix { $0 != quote }, as: UTF8.self)
        }
        let endsHere = times.contains { WallTime(rfc3339: $0) == seen }
        // From the end, so that earlier positions stay valid.
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
