// The kind of data in a stream.
import ServerBase

/// The kind of content of a stream, from its newest record.
package enum StreamContent: String {
    case audio
    case events
    case positions
    case readings

    /// `newest`: a JSON object; "" if it was too long to store.
    package init(newest: String) {
        let record = FlatRecord(newest)
        let isEvent = record.text("kind") != nil && record.text("source") != nil
        if record.text("audio_file") != nil {
            self = .audio
        } else if isEvent, record.number(QuantityName.strength) == nil {
            self = .events
        } else if record.number("latitude") != nil, record.number("longitude") != nil {
            self = .positions
        } else {
            self = .readings
        }
    }

    /// True if numbers of its records are readings.
    package var hasReadings: Bool { self == .positions || self == .readings }
}
