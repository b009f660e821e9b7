// Splits received bytes into lines, in bounded memory.

/// A buffer of received bytes that are not yet a whole line.
package struct LineBuffer {
    /// One line of the input, without its line end.
    package enum Line: Equatable {
        case whole([UInt8])
        /// A line longer than the limit; returned once, and the rest of the line is skipped.
        case tooLong
    }

    private var bytes: [UInt8] = []
    /// Start of the next line, and how far its end was searched for.
    private var start = 0
    private var searched = 0
    private var isSkipping = false
    private var isEnded = false

    package init() {}

    /// Bytes that `next` has not returned yet.
    package var count: Int { bytes.count - start }

    /// `next` may still return something without more input.
    package var isUnread: Bool { searched < bytes.count || (isEnded && count > 0) }

    package mutating func append(_ more: some Collection<UInt8>) {
        invariant(
            start <= searched && searched <= bytes.count,
            "a line end is searched in its line"
        )
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes += more
    }

    /// Marks the end of the input: the rest is the last line.
    package mutating func end() { isEnded = true }

    /// Returns the next line without its end; nil if more bytes are needed.
    package mutating func next(limit: Int) -> Line? {
        while let end = bytes[searched...].firstIndex(of: 10) {
            let line = bytes[start..<end]
            (start, searched) = (end + 1, end + 1)
            if !isSkipping { return line.count > limit ? .tooLong : .whole(Array(line)) }
            isSkipping = false
        }
        searched = bytes.count
        if isSkipping || count > limit {
            defer { isSkipping = true }
            forget()
            return isSkipping ? nil : .tooLong
        }
        guard isEnded, count > 0 else { return nil }
        defer { forget() }
        return .whole(Array(bytes[start...]))
    }

    /// Returns at most `limit` bytes that follow the last line, and removes them.
    package mutating func takeBytes(atMost limit: Int) -> ArraySlice<UInt8> {
        let taken = bytes[start...].prefix(max(0, limit))
        start += taken.count
        searched = start
        return taken
    }

    private mutating func forget() {
        bytes.removeAll()
        (start, searched) = (0, 0)
    }
}
