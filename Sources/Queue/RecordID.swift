// Ids for records and batches: unique forever, the same on each retry.
import Records
import SQLite

/// Makes the ids of records: UUIDs of version 8 (RFC 9562, section 5.8).
///
/// 72 random bits identify the process start that accepted the record, 10 bits the stream, 40 bits
/// the row. A copied, restored or rolled-back database reuses rows, but never a process start.
package struct RecordIDs: Sendable {
    /// The random number used for ids from a row on.
    struct Seed: Sendable, Equatable {
        var first: Int64
        /// 16 random bytes; nil where they are not known any more.
        var seed: [UInt8]?

        fileprivate static func id(
            _ seed: [UInt8],
            _ stream: Stream,
            _ sequence: Int64
        ) -> String {
            let bytes = (seed + [UInt8](repeating: 0, count: 16)).prefix(16)
            let words = bytes.reduce(into: (UInt64(0), UInt64(0))) { words, byte in
                words = (words.0 << 8 | words.1 >> 56, words.1 << 8 | UInt64(byte))
            }
            let low = words.1 & 0x3FFC_0000_0000_0000 | 0x8000_0000_0000_0000
            let row = UInt64(bitPattern: sequence) & 0xFF_FFFF_FFFF
            return UUIDText.format(
                words.0 & ~0xF000 | 0x8000,
                low | UInt64(stream.number) << 40 | row
            )
        }
    }

    private let stream: Stream
    /// Ordered by `first`, ascending.
    private let seeds: [Seed]

    /// Uses the seeds of one stream, in order.
    init(_ stream: Stream, _ seeds: [Seed]) {
        self.stream = stream
        self.seeds = seeds
    }

    /// Reads the seeds needed for a range of rows.
    init(
        _ connection: borrowing Connection,
        _ stream: Stream,
        _ range: ClosedRange<Int64>
    ) throws {
        let rows = try connection.prepare(
            """
            SELECT first, seed FROM id_seeds WHERE stream=?1 AND first<=?3 AND
            first>=ifnull((SELECT max(first) FROM id_seeds WHERE stream=?1 AND first<=?2), 0)
            ORDER BY first
            """,
            stream.number,
            range.lowerBound,
            range.upperBound
        )
        self.init(stream, try rows.compactMap { Seed(first: $0.required(0), seed: $0.data(1)) })
    }

    /// Limits the seeds of a quarantined database to those that can be trusted.
    ///
    /// Its newest random number may be missing, or older than the records. `seeded` is the row
    /// where it should start; `next` is the first record that its counters do not know.
    func trusted(from seeded: Int64, before next: Int64) -> Self {
        var kept = seeds.filter { $0.first < next }
        if seeded < next, !kept.contains(where: { $0.first >= seeded }) {
            kept.append(Seed(first: seeded, seed: nil))
        }
        kept.append(Seed(first: next, seed: nil))
        return Self(stream, kept)
    }

    /// Returns the id of a record, 36 characters.
    ///
    /// Throws damage if there is no known seed for its row.
    package func id(_ sequence: Int64) throws -> String {
        let after = seeds.firstPlace { $0.first > sequence }
        guard after > 0, let seed = seeds[after - 1].seed else {
            throw SQLiteError(
                code: 11,
                message: "no id for record \(sequence) of \(stream)",
                statement: ""
            )
        }
        return Seed.id(seed, stream, sequence)
    }
}

/// UUIDs as text, without Foundation.
package enum UUIDText {
    /// Returns a UUID of version 4 made of 128 random bits.
    package static func random(_ first: UInt64, _ second: UInt64) -> String {
        format((first & ~0xF000) | 0x4000, (second & ~(0xC0 << 56)) | 0x80 << 56)
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
