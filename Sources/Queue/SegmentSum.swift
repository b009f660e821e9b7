// What a segment's bytes add up to.
internal import CZlib
internal import SQLite

/// CRC-32 of a segment's encoded sound (RFC 1952, section 8), stored beside it.
///
/// A segment is longer than a page of the database. Where the disk loses the end of the journal after the database was
/// written, a row may go on in a page that belongs to another table by now, which SQLite does not see.
enum SegmentSum {
    static func of(_ bytes: [UInt8]) -> Int64 {
        Int64(bytes.withUnsafeBufferPointer { crc32_z(0, $0.baseAddress, $0.count) })
    }

    /// Throws damage where the bytes of a segment add up to something else; `sum`: nil before the sixth version.
    static func check(_ bytes: [UInt8], of segment: Int64, against sum: Int64?) throws(SQLiteError)
    {
        guard let sum, sum != of(bytes) else { return }
        let message = "segment \(segment) is not what was recorded"
        throw SQLiteError(code: 11, message: message, statement: "")
    }
}
