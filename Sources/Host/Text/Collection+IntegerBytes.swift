// Integers as bytes, for file formats and protocols.

/// Returns the bytes of an integer, lowest first.
package func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
}

/// Returns the bytes of an integer, highest first.
package func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

extension Collection where Element: FixedWidthInteger {
    /// The bytes of all elements, of each the lowest first.
    package var littleEndianBytes: [UInt8] { map(\.littleEndian).withUnsafeBytes { Array($0) } }
}
