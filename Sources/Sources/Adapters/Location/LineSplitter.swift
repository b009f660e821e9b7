// A stream of bytes to lines of bounded length.

/// Splits at line ends; a line over the limit is passed over as a whole and counted.
struct LineSplitter {
    /// gpsd's longest response (gpsd_json(5)).
    static let limit = 10_240

    private var partial: [UInt8] = []
    private var isSkipping = false
    /// Lines that were too long.
    private(set) var overlong = 0

    /// Calls `body` with each line that `bytes` completes, without its end.
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
