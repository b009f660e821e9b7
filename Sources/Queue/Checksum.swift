// Checksums for the content of long records.
import CZlib
import Records
import SQLite

/// CRC-32 (RFC 1952, section 8) of data longer than a database page, stored in the same row.
///
/// That is a segment's encoded audio, the payload of a long advertisement, or a long user record.
/// If the disk loses the end of the WAL after the database was written, a row may continue in a
/// page that now belongs to another row, which SQLite does not detect.
enum Checksum {
    /// Shorter data fits into its row's page: a row of up to 989 bytes in pages of 1 KiB
    /// (sqlite.org/fileformat2.html, section 1.6).
    private static let least = 900

    static func of(_ bytes: [UInt8]) -> Int64 {
        Int64(bytes.withUnsafeBufferPointer { crc32_z(0, $0.baseAddress, $0.count) })
    }

    /// nil for data that fits into its row's page.
    static func ofLong(_ bytes: [UInt8]) -> Int64? { bytes.count < least ? nil : of(bytes) }

    /// Covers all text and bytes of a plain record; nil if it fits into its page.
    static func ofLong(_ values: [ColumnValue]) -> Int64? {
        ofLong(values.flatMap(\.textBytes))
    }

    /// Throws damage if the checksum differs from `stored`; nil means none was stored.
    static func check(
        _ sum: @autoclosure () -> Int64?,
        against stored: Int64?,
        of table: String,
        _ row: Int64
    ) throws(SQLiteError) {
        guard let stored else { return }
        try requireIntact(sum() == stored, "\(table): row \(row) is not what was stored")
    }
}

extension ColumnValue {
    fileprivate var textBytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .bytes(let bytes): bytes
        default: []
        }
    }
}
