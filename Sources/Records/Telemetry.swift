// The readings in an advertisement, packed for storage.

/// One stored reading.
package struct Reading: Sendable, Equatable {
    package var quantity: Quantity
    /// A number's count of its quantity's step, or the code of a flag or event.
    package var scaled: Int64
    /// The bytes of a text or hex value; otherwise empty.
    package var bytes: ArraySlice<UInt8>

    package init(quantity: Quantity, scaled: Int64, bytes: ArraySlice<UInt8> = []) {
        self.quantity = quantity
        self.scaled = scaled
        self.bytes = bytes
    }
}

/// The packed readings of one advertisement, in the order they were added.
package struct Telemetry: Sendable, Hashable {
    /// Per reading: one byte of `Quantity`, then the scaled value as a zigzag varint.
    ///
    /// For a text or hex value, that value is its length, and its bytes follow.
    package private(set) var packed: [UInt8] = []

    package init() {}

    /// Reads the bytes of another value's `packed`; nil if they are malformed.
    package init?(packed: [UInt8]) {
        self.packed = packed
        guard Self.walk(packed, { _ in }) else { return nil }
    }

    package var isEmpty: Bool { packed.isEmpty }

    /// Adds a reading already counted in the quantity's step (`0.01` °C, `1` mV).
    package mutating func add(_ quantity: Quantity, scaled: Int64) {
        packed.append(quantity.rawValue)
        var rest = UInt64(bitPattern: (scaled << 1) ^ (scaled >> 63))
        while rest > 0x7F {
            packed.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        packed.append(UInt8(rest))
    }

    /// Adds a reading in the quantity's unit, rounded to its decimals; ignores a value that is not
    /// finite.
    package mutating func add(_ quantity: Quantity, _ value: Double) {
        var scale = 1.0
        for _ in 0..<quantity.decimals { scale *= 10 }
        let scaled = (value * scale).rounded(.toNearestOrAwayFromZero)
        guard scaled.isFinite, abs(scaled) < 1e15 else { return }
        add(quantity, scaled: Int64(scaled))
    }

    /// Adds a text or bytes to a quantity of that form.
    package mutating func add(_ quantity: Quantity, bytes: some Collection<UInt8>) {
        guard quantity.form == .text || quantity.form == .hex else { return }
        add(quantity, scaled: Int64(bytes.count))
        packed.append(contentsOf: bytes)
    }

    /// The readings, in the order they were added.
    package var readings: [Reading] {
        var readings: [Reading] = []
        _ = Self.walk(packed) { if $0.quantity != .mark { readings.append($0) } }
        return readings
    }

    /// The sensor's sequence number of this measurement; nil without one.
    package var mark: Int64? {
        var mark: Int64?
        _ = Self.walk(packed) { if $0.quantity == .mark { mark = $0.scaled } }
        return mark
    }

    private static func walk(_ packed: [UInt8], _ each: (Reading) -> Void) -> Bool {
        var index = 0
        while index < packed.count {
            guard let quantity = Quantity(rawValue: packed[index]) else { return false }
            index += 1
            guard let value = varint(packed, &index) else { return false }
            var reading = Reading(quantity: quantity, scaled: value)
            switch quantity.form {
            case .number, .flag, .event: break
            case .text, .hex:
                guard let count = Int(exactly: value), count >= 0, count <= packed.count - index
                else { return false }
                reading.bytes = packed[index..<index + count]
                index += count
            }
            each(reading)
        }
        return true
    }

    private static func varint(_ packed: [UInt8], _ index: inout Int) -> Int64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            guard index < packed.count, shift < 64 else { return nil }
            let byte = packed[index]
            index += 1
            value |= UInt64(byte & 0x7F) << shift
            guard byte & 0x80 != 0 else { break }
            shift += 7
        }
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }
}
