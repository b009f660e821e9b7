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
}
