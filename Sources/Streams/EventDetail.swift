// An event's detail as JSON text, which is how it is stored and sent.
internal import Host

/// Writes the `detail` object of an event.
package enum EventDetail {
    package static func encode(_ detail: [(key: String, value: EventValue)]) -> String {
        var json = JSONText()
        json.object {
            for (key, value) in detail {
                switch value {
                case .text(let text): $0.field(key, text)
                case .integer(let integer): $0.field(key, integer)
                case .number(let number): $0.field(key, number)
                case .time(let time): $0.field(key, time)
                }
            }
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }

    /// Spans of time, told by the clock that the event saw.
    private static let spans = ["from", "to", "since", "until"].map { Array("\"\($0)\":\"".utf8) }

    /// The text as it is sent: its spans are put right with the event, which saw the clock at `seen`.
    ///
    /// A time that is nearer to the right one was known better when the event was made.
    static func dated(_ text: String, seen: WallTime, right: WallTime) -> String {
        guard seen != right else { return text }
        var bytes = Array(text.utf8)
        for field in spans {
            guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: field) })
            else { continue }
            let old = bytes[(start + field.count)...].prefix { $0 != UInt8(ascii: "\"") }
            guard let time = WallTime(rfc3339: String(decoding: old, as: UTF8.self)),
                time.distance(to: seen) < time.distance(to: right)
            else { continue }
            let shift = right.milliseconds &- seen.milliseconds
            let new = WallTime(milliseconds: time.milliseconds &+ shift).rfc3339
            bytes.replaceSubrange(old.indices, with: new.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension WallTime {
    fileprivate func distance(to other: Self) -> UInt64 {
        (milliseconds &- other.milliseconds).magnitude
    }
}
