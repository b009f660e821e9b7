// UUIDs as numbers, for ranges of them.

/// A UUID as a number of 128 bits, in two halves that sort as the UUIDs do.
struct UUIDNumber {
    let high: Int64
    let low: Int64

    /// Returns nil for anything but a UUID in lowercase with hyphens: each number is one text.
    init?(_ text: String) {
        guard text.utf8.count == 36 else { return nil }
        var words = (UInt64(0), UInt64(0))
        for (place, byte) in text.utf8.enumerated() {
            let digit: UInt8
            switch (place, byte) {
            case (8, 45), (13, 45), (18, 45), (23, 45): continue
            case (8, _), (13, _), (18, _), (23, _): return nil
            case (_, 48...57): digit = byte - 48
            case (_, 97...102): digit = byte - 87
            default: return nil
            }
            words = (words.0 << 4 | words.1 >> 60, words.1 << 4 | UInt64(digit))
        }
        // SQLite has signed numbers only: 0 becomes the least.
        high = Int64(bitPattern: words.0 ^ 1 << 63)
        low = Int64(bitPattern: words.1 ^ 1 << 63)
    }
}
