// Records as they look on the wire (contract, section 3).
package import Host
package import Store

/// Writes single records as JSON objects.
package enum RecordJSON {
    /// A timestamp with what is known of the clock that it comes from.
    package typealias Moment = (wall: WallTime, quality: ClockQuality)

    package static func write(
        _ fix: Fix,
        id: String,
        at moment: Moment,
        to json: inout JSONText
    ) {
        json.object {
            $0.field("id", id)
            $0.field("timestamp", moment.wall)
            $0.field("latitude", scaled: scaled(fix.latitude, 1e7), decimals: 7)
            $0.field("longitude", scaled: scaled(fix.longitude, 1e7), decimals: 7)
            if let altitude = fix.altitude {
                $0.field("altitude", scaled: scaled(altitude, 10), decimals: 1)
            }
            if let speed = fix.speed { $0.field("speed", scaled: scaled(speed, 100), decimals: 2) }
            if let course = fix.course {
                $0.field("course", scaled: scaled(course, 10), decimals: 1)
            }
            if let accuracy = fix.horizontalAccuracy {
                $0.field("horizontal_accuracy", scaled: scaled(accuracy, 10), decimals: 1)
            }
            if let accuracy = fix.verticalAccuracy {
                $0.field("vertical_accuracy", scaled: scaled(accuracy, 10), decimals: 1)
            }
            $0.field("fix", fix.mode == .threeDimensional ? "3d" : "2d")
            if let satellites = fix.satellites { $0.field("satellites", Int64(satellites)) }
            $0.field("clock", moment.quality.rawValue)
        }
    }

    package static func write(
        _ sighting: Sighting,
        id: String,
        at moment: Moment,
        to json: inout JSONText
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

    /// `kind` and `beacon_id`.
    private static func write(_ identity: BeaconIdentity, to json: inout JSONText) {
        json.field("kind", identity.kind.name)
        json.field("beacon_id", identity.beaconID)
    }

    /// What an advertisement says of itself: `tx_power`, `telemetry`, `data`.
    package static func write(
        _ txPower: Int?,
        _ telemetry: Telemetry,
        _ data: [UInt8],
        to json: inout JSONText
    ) {
        if let txPower { json.field("tx_power", Int64(txPower)) }
        if !telemetry.isEmpty {
            json.key("telemetry")
            json.object { object in
                for (quantity, scaled) in telemetry.readings {
                    object.field(quantity.key, scaled: scaled, decimals: quantity.decimals)
                }
            }
        }
        if !data.isEmpty { json.field("data", Hex.text(data)) }
    }

    /// `detail` is JSON already.
    package static func write(
        kind: String,
        source: String,
        detail: String,
        id: String,
        at moment: Moment,
        to json: inout JSONText
    ) {
        json.object {
            $0.field("id", id)
            $0.field("timestamp", moment.wall)
            $0.field("kind", kind)
            $0.field("source", source)
            $0.key("detail")
            $0.raw(detail)
            $0.field("clock", moment.quality.rawValue)
        }
    }

    /// Everything of a chunk, with `sound` writing the field that holds or names its file.
    package static func write(
        _ chunk: Chunk,
        id: String,
        at moment: Moment,
        to json: inout JSONText,
        sound: (inout JSONText) throws -> Void
    ) rethrows {
        let duration = chunk.duration
        let overlap = Int64(chunk.overlapFrames) * 1000 / Int64(max(1, chunk.rate))
        let level = SoundLevel.decibels(chunk.meanSquare)
        try json.object {
            $0.field("id", id)
            $0.field("timestamp_start", moment.wall)
            // Real time, where `duration` is frames over rate: the device's clock is not ours.
            $0.field("timestamp_end", moment.wall + .milliseconds(chunk.span ?? duration))
            $0.field("duration", scaled: duration, decimals: 3)
            try sound(&$0)
            $0.field("audio_format", chunk.codec.format)
            $0.field("sample_rate", Int64(chunk.rate))
            $0.field("overlap_duration", scaled: overlap, decimals: 3)
            $0.field("average_db_level", scaled: scaled(level, 10), decimals: 1)
            $0.field("device", chunk.device)
            $0.field("clock", moment.quality.rawValue)
        }
    }

    private static func scaled(_ value: Double, _ factor: Double) -> Int64 {
        let scaled = (value * factor).rounded(.toNearestOrAwayFromZero)
        return abs(scaled) < 9e15 ? Int64(scaled) : 0
    }
}

/// Bytes as lower-case hex.
package enum Hex {
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            for nibble in [byte >> 4, byte & 15] {
                text.append(nibble < 10 ? 48 + nibble : 87 + nibble)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
