// What the bytes of a long record add up to.
import CZlib
import Records
import SQLite

/// CRC-32 (RFC 1952, section 8) of what is longer than a page of the database, stored in the same row: a segment's
/// encoded sound, the payload of a long advertisement, a long record of a user.
///
/// Where the disk loses the end of the journal after the database was written, a row may go on in a page that belongs to
/// another row by now, which SQLite does not see.
enum Checksum {
    /// Shorter ones fit into the page of their row: a row of up to 989 bytes in pages of 1 KiB
    /// (sqlite.org/fileformat2.html, section 1.6).
    private static let least = 900

    static func of(_ bytes: [UInt8]) -> Int64 {
        Int64(bytes.withUnsafeBufferPointer { crc32_z(0, $0.baseAddress, $0.count) })
    }

    /// nil for what fits into the page of its row.
    static func ofLong(_ bytes: [UInt8]) -> Int64? { bytes.count < least ? nil : of(bytes) }

    /// Of all text and bytes of a plain record; nil for one that fits into its page.
    static func ofLong(_ values: [ColumnValue]) -> Int64? {
        ofLong(values.flatMap(\.textBytes))
    }

    /// Throws damage where what was read adds up to something else than was stored; `stored`: nil where nothing was.
    static func check(
        _ sum: @autoclosure () -> Int64?,
        against stored: Int64?,
        of table: String,
        _ row: Int64
    ) throws(SQLiteError) {
        guard let stored, sum() != stored else { return }
        let message = "\(table): row \(row) is not what was stored"
        throw SQLiteError(code: 11, message: message, statement: "")
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
