// Ids for records and batches: unique for ever, the same at each retry.

/// Makes the ids of a database's records: a UUID of version 8 (RFC 9562, section 5.8).
///
/// 78 random bits name the database, 4 bits the stream, 40 bits the row: a database started anew after
/// corruption begins at row 1 again and still never repeats an id.
package struct RecordIDs: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64

    /// `generation`: 16 random bytes, kept in the database.
    package init(generation: [UInt8]) {
        let bytes = (generation + [UInt8](repeating: 0, count: 16)).prefix(16)
        let words = bytes.reduce(into: (UInt64(0), UInt64(0))) { words, byte in
            words = (words.0 << 8 | words.1 >> 56, words.1 << 8 | UInt64(byte))
        }
        high = (words.0 & ~0xF000) | 0x8000
        low = (words.1 & 0x3FFF_F000_0000_0000) | 0x8000_0000_0000_0000
    }

    /// The 36 characters of the id of one record.
    package func id(_ stream: Stream, _ sequence: Int64) -> String {
        let row = UInt64(bitPattern: sequence) & 0xFF_FFFF_FFFF
        return UUIDText.format(high, low | UInt64(stream.rawValue) << 40 | row)
    }
}

/// UUIDs as text, without Foundation.
package enum UUIDText {
    /// A random UUID (version 4).
    package static func random() -> String {
        let high = (UInt64.random(in: 0...UInt64.max) & ~0xF000) | 0x4000
        let low = (UInt64.random(in: 0...UInt64.max) & ~(0xC0 << 56)) | 0x80 << 56
        return format(high, low)
    }

    static func format(_ high: UInt64, _ low: UInt64) -> String {
        String(unsafeUninitializedCapacity: 36) { buffer in
            var at = 0
            for (word, dashes) in [(high, [8, 12]), (low, [0, 4])] {
                for nibble in 0..<16 {
                    if dashes.contains(nibble), at > 0 {
                        buffer[at] = UInt8(ascii: "-")
                        at += 1
                    }
                    let value = UInt8(truncatingIfNeeded: word >> UInt64(60 - nibble * 4)) & 15
                    buffer[at] = value < 10 ? 48 + value : 87 + value
                    at += 1
                }
            }
            return 36
        }
    }
}
