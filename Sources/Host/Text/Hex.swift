// Bytes as hexadecimal digits, and back.

/// Returns bytes as lower-case hexadecimal digits.
package func hex(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.append(nibble < 10 ? 48 + nibble : 87 + nibble)
        }
    }
    return String(decoding: text, as: UTF8.self)
}

/// Returns the bytes of an even number of hexadecimal digits of either case; nil for anything else.
package func bytes(hex text: some StringProtocol) -> [UInt8]? {
    let nibbles = text.utf8.map { byte -> UInt8? in
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
    let known = nibbles.compactMap { $0 }
    guard known.count == nibbles.count, known.count % 2 == 0 else { return nil }
    return stride(from: 0, to: known.count, by: 2).map { known[$0] << 4 | known[$0 + 1] }
}
