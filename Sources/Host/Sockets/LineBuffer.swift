// Lines out of bytes that come in any pieces, in bounded memory.

/// What was received and is no whole line yet.
package struct LineBuffer {
    /// A piece of the input between two ends of line.
    package enum Line: Equatable {
        case whole([UInt8])
        /// A line that is longer than the limit; returned once, and the rest of the line is skipped.
        case tooLong
    }

    private var bytes: [UInt8] = []
    /// Where the next line begins, and how far its end was looked for.
    private var start = 0
    private var searched = 0
    private var isSkipping = false
    private var isEnded = false

    package init() {}

    /// Bytes that are no line yet, or were not asked for.
    package var count: Int { bytes.count - start }

    /// `next` was not asked for all that there is.
    package var isUnread: Bool { searched < bytes.count || (isEnded && count > 0) }

    package mutating func append(_ more: some Collection<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes += more
    }

    /// No more bytes will come: what is left is a line.
    package mutating func end() { isEnded = true }

    /// The next line, without its end; nil when more bytes are needed.
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

    private mutating func forget() {
        bytes.removeAll()
        (start, searched) = (0, 0)
    }
}
