// Writes records in the wire format (waypost-protocol(7), RECORDS).
import Host
package import JSON

/// Writes single records as JSON objects.
package enum RecordJSON {
    package static func write(
        _ sighting: Sighting,
        id: String,
        at moment: Moment,
        to json: inout JSONWriter
    ) {
        json.object {
            $0.field("id", id)
            $0.field("timestamp", moment.wall)
            write(sighting.identity, to: &$0)
            $0.field("address", sighting.identity.address.description)
            $0.field("address_type", sighting.identity.addressType.name)
            if let rssi = sighting.rssi { $0.field("rssi", Int64(rssi)) }
            write(sighting.identity.txPower, sighting.telemetry, sighting.data, to: &$0)
            $0.field("clock", moment.quality.rawValue)
        }
    }

    /// Writes `kind`, and `beacon_id` if the beacon has an id that does not change.
    private static func write(_ identity: BeaconIdentity, to json: inout JSONWriter) {
        json.field("kind", identity.kind.name)
        if !identity.beaconID.isEmpty { json.field("beacon_id", identity.beaconID) }
    }

    /// Writes the fields of an advertisement: `tx_power`, `telemetry`, `data`.
    package static func write(
        _ txPower: Int?,
        _ telemetry: Telemetry,
        _ data: [UInt8],
        to json: inout JSONWriter
    ) {
        if let txPower { json.field("tx_power", Int64(txPower)) }
        if !telemetry.isEmpty {
            json.key("telemetry")
            json.object { write(telemetry.readings, to: &$0) }
        }
        if !data.isEmpty { json.field("data", Hex.text(data)) }
    }

    /// Writes readings; the second of one quantity gets `_2` after its key, and so on.
    private static func write(_ readings: [Reading], to json: inout JSONWriter) {
        for (place, reading) in readings.enumerated() {
            let before = readings[..<place].count { $0.quantity == reading.quantity }
            let key = reading.quantity.key
            write(reading, as: before == 0 ? key : "\(key)_\(before + 1)", to: &json)
        }
    }

    private static func write(_ reading: Reading, as key: String, to json: inout JSONWriter) {
        switch reading.quantity.form {
        case .number(let decimals): json.field(key, scaled: reading.scaled, decimals: decimals)
        case .flag: json.field(key, reading.scaled != 0)
        case .event(let names):
            let name = UInt8(exactly: reading.scaled).flatMap { names[$0] }
            json.field(key, name ?? "event_\(reading.scaled)")
        case .text: json.field(key, String(decoding: reading.bytes, as: UTF8.self))
        case .hex: json.field(key, Hex.text(reading.bytes))
        }
    }

    /// Writes a chunk; `sound` writes the field that holds or names its file.
    package static func write(
        _ chunk: Chunk,
        id: String,
        at moment: Moment,
        to json: inout JSONWriter,
        sound: (inout JSONWriter) throws -> Void
    ) rethrows {
        let duration = chunk.duration
        let overlap = Int64(chunk.overlapFrames) * 1000 / Int64(max(1, chunk.rate))
        let level = AudioLevel.decibels(chunk.meanSquare)
        let device = CaptureDevice(stored: chunk.device)
        try json.object {
            $0.field("id", id)
            $0.field("timestamp_start", moment.wall)
            // By the device's clock; `duration` is frames over rate, by the sound card's, which
            // differs a little.
            $0.field("timestamp_end", moment.wall + .milliseconds(chunk.span ?? duration))
            $0.field("duration", scaled: duration, decimals: 3)
            try sound(&$0)
            $0.field("audio_format", chunk.codec.format)
            $0.field("sample_rate", Int64(chunk.rate))
            $0.field("overlap_duration", scaled: overlap, decimals: 3)
            $0.field("average_db_level", scaled: scaled(level, 10), decimals: 1)
            $0.field("device", device.name)
            if let rate = device.rate { $0.field("device_rate", Int64(rate)) }
            $0.field("clock", moment.quality.rawValue)
        }
    }

    private static func scaled(_ value: Double, _ factor: Double) -> Int64 {
        let scaled = (value * factor).rounded(.toNearestOrAwayFromZero)
        return abs(scaled) < 9e15 ? Int64(scaled) : 0
    }
}

/// Formats bytes as lower-case hex.
package enum Hex {
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 48 + nibble : 87 + nibble }
}
