// Splits a byte stream into lines of bounded length.

/// Splits at line ends; skips and counts a line over the limit.
struct LineSplitter {
    /// Bytes: a SKY object with four constellations on several bands has up to 40 kB.
    static let limit = 40_960

    private var partial: [UInt8] = []
    private var isSkipping = false
    /// Lines that were too long.
    private(set) var overlong = 0

    /// Calls `body` with each line that `bytes` completes, without its line end.
    mutating func append(_ bytes: some Sequence<UInt8>, _ body: ([UInt8]) -> Void) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                finish(body)
            } else if !isSkipping {
                partial.append(byte)
                isSkipping = partial.count > Self.limit
            }
        }
    }

    private mutating func finish(_ body: ([UInt8]) -> Void) {
        if isSkipping {
            overlong += 1
        } else {
            if partial.last == UInt8(ascii: "\r") { partial.removeLast() }
            if !partial.isEmpty { body(partial) }
        }
        partial.removeAll(keepingCapacity: true)
        isSkipping = false
    }
}
