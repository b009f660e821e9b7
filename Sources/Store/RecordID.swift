// Ids for records and batches: unique for ever, the same at each retry.

/// Makes the ids of a database's records: a UUID of version 8 (RFC 9562, section 5.8).
///
/// 78 random bits name the database, 4 bits the stream, 40 bits the row: a database started anew after
/// corruption begins at row 1 again and still never repeats an id. A record that was salvaged from another
/// database keeps the id it had there, so that a server that has it already knows it.
package struct RecordIDs: Sendable, Hashable {
    /// Salvaged records: rows here, and the database and row they had there.
    struct Origin: Sendable, Hashable {
        var first: Int64
        var last: Int64
        var generation: [UInt8]
        var oldFirst: Int64
        fileprivate var base: Base

        init(first: Int64, last: Int64, generation: [UInt8], oldFirst: Int64) {
            self.first = first
            self.last = last
            self.generation = generation
            self.oldFirst = oldFirst
            base = Base(generation)
        }
    }

    /// The bits that all ids of a database share.
    fileprivate struct Base: Sendable, Hashable {
        var high: UInt64
        var low: UInt64

        init(_ generation: [UInt8]) {
            let bytes = (generation + [UInt8](repeating: 0, count: 16)).prefix(16)
            let words = bytes.reduce(into: (UInt64(0), UInt64(0))) { words, byte in
                words = (words.0 << 8 | words.1 >> 56, words.1 << 8 | UInt64(byte))
            }
            high = (words.0 & ~0xF000) | 0x8000
            low = (words.1 & 0x3FFF_F000_0000_0000) | 0x8000_0000_0000_0000
        }

        func id(_ stream: Stream, _ row: Int64) -> String {
            let number = UInt64(bitPattern: row) & 0xFF_FFFF_FFFF
            return UUIDText.format(high, low | UInt64(stream.rawValue) << 40 | number)
        }
    }

    let generation: [UInt8]
    private let base: Base
    /// By stream, in order of rows.
    private var origins: [Stream: [Origin]] = [:]

    /// `generation`: 16 random bytes, kept in the database.
    package init(generation: [UInt8]) {
        self.generation = generation
        base = Base(generation)
    }

    /// Ranges must be added in order of rows.
    mutating func add(_ origin: Origin, _ stream: Stream) {
        origins[stream, default: []].append(origin)
    }

    /// The 36 characters of the id of one record.
    package func id(_ stream: Stream, _ sequence: Int64) -> String {
        guard let range = range(stream, sequence) else { return base.id(stream, sequence) }
        return range.base.id(stream, range.oldFirst + sequence - range.first)
    }

    /// The database that first held a record, and its row there.
    func origin(_ stream: Stream, _ sequence: Int64) -> (generation: [UInt8], row: Int64) {
        guard let range = range(stream, sequence) else { return (generation, sequence) }
        return (range.generation, range.oldFirst + sequence - range.first)
    }

    private func range(_ stream: Stream, _ sequence: Int64) -> Origin? {
        guard let ranges = origins[stream] else { return nil }
        let after = ranges.firstPlace { $0.first > sequence }
        guard after > 0, sequence <= ranges[after - 1].last else { return nil }
        return ranges[after - 1]
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
            for nibble in 0..<32 {
                if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
                    buffer[at] = UInt8(ascii: "-")
                    at += 1
                }
                let word = nibble < 16 ? high : low
                let value = UInt8(truncatingIfNeeded: word >> UInt64(60 - nibble % 16 * 4)) & 15
                buffer[at] = value < 10 ? 48 + value : 87 + value
                at += 1
            }
            return 36
        }
    }
}
