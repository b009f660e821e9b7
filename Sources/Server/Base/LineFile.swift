// Reads the lines of a record file in bounded memory.
import CLinux
import Glibc
import Host

/// A record file that is open for reading.
package struct LineFile: ~Copyable {
    private static let block = 256 << 10
    /// Bytes; longer lines are skipped, because all that the index needs is shorter.
    package static let longest = 1 << 20
    /// Bytes that identify a place in a file: a few records.
    private static let tailSize: Int64 = 4096

    private let file: Descriptor
    private let path: String

    /// Nil if the file does not exist.
    package static func open(_ path: String) throws -> LineFile? {
        do throws(SystemError) {
            return LineFile(file: try Descriptor(opening: path, O_RDONLY), path: path)
        } catch {
            guard error.code == ENOENT || error.code == ENOTDIR else { throw error }
            return nil
        }
    }

    /// Reads up to `count` bytes from `place` on; fewer only at the file's end.
    package func read(_ count: Int, at place: Int64) throws -> [UInt8] {
        try readBytes(count, of: file.number, at: place, path)
    }

    /// Returns the current size in bytes.
    package func size() throws -> Int64 {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw SystemError.last("stat", on: path) }
        return Int64(status.st_size)
    }

    /// Returns the SHA-256 of the bytes just before a place.
    ///
    /// It differs if the file was replaced, or if lines were cut off and others written in their
    /// place.
    package func tail(before place: Int64) throws -> [UInt8] {
        let start = max(0, place - Self.tailSize)
        return sha256(String(decoding: try read(Int(place - start), at: start), as: UTF8.self))
    }

    /// Passes on the lines between two places; nil for one that is too long or not a JSON object.
    ///
    /// Returns where it stopped: at `end`, or after the line that used up the budget of bytes.
    @discardableResult package func forEachLine(
        from start: Int64,
        to end: Int64,
        budget: Int = .max,
        _ receive: (RecordLine?) throws -> Void
    ) throws -> Int64 {
        try forEachLine(from: start, to: end, budget: budget) { line, _ in try receive(line) }
    }

    /// Like the other, and passes on the bytes of the file that each line takes, with its end.
    @discardableResult package func forEachLine(
        from start: Int64,
        to end: Int64,
        budget: Int = .max,
        _ receive: (RecordLine?, Range<Int64>) throws -> Void
    ) throws -> Int64 {
        guard start >= 0 else { throw Failure("\(path) cannot be read from byte \(start)") }
        var position = start
        var bytes: [UInt8] = []
        var isPassing = false
        while position < end, position - start < Int64(budget) || isPassing {
            let next = position + Int64(bytes.count)
            let block = try read(min(Self.block, max(budget, 4096), Int(end - next)), at: next)
            guard !block.isEmpty else { throw Failure("\(path) has become shorter") }
            bytes += block
            let used = try giveLines(of: bytes, at: position, &isPassing, receive)
            bytes.removeFirst(used)
            position += Int64(used)
            mustHold(position <= end, "lines end in the range that is read")
            if bytes.count > Self.longest {
                position += Int64(bytes.count)
                bytes = []
                isPassing = true
            }
            // Committed data ends with a newline, unless an editor removed the last one.
            if position + Int64(bytes.count) >= end, !bytes.isEmpty || isPassing {
                try receive(nil, position..<end)
                return end
            }
        }
        return position
    }

    /// Passes on the complete lines, and returns their size in bytes.
    private func giveLines(
        of bytes: [UInt8],
        at position: Int64,
        _ isPassing: inout Bool,
        _ receive: (RecordLine?, Range<Int64>) throws -> Void
    ) throws -> Int {
        try bytes.withUnsafeBytes { raw in
            let view = ByteView(raw, isMapped: false)
            var start = 0
            while start < raw.count {
                let end = view.lineFeed(from: start)
                guard end < raw.count else { break }
                let extent = position + Int64(start)..<position + Int64(end + 1)
                if isPassing {
                    isPassing = false
                    try receive(nil, extent)
                } else {
                    try receive(RecordLine(ByteView(view[start..<end], isMapped: false)), extent)
                }
                start = end + 1
            }
            return start
        }
    }
}
