// The lines of a file of records, read in bounded memory.
import CLinux
import Glibc

/// A file of records, open for reading; closed with its owner.
struct LineFile: ~Copyable {
    private static let block = 256 << 10
    /// A line that is longer is passed over: what the index looks at is short.
    static let longest = 1 << 20
    /// Bytes by which a place in a file is known: a few records.
    private static let tailSize: Int64 = 4096

    private let number: Int32
    private let path: String

    private init(number: Int32, path: String) {
        self.number = number
        self.path = path
    }

    /// Nil where there is no such file.
    static func open(_ path: String) throws -> LineFile? {
        let number = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw Trouble("open", path) }
            return nil
        }
        return LineFile(number: number, path: path)
    }

    deinit { close(number) }

    /// Up to so many bytes from a place on; fewer at the file's end alone.
    func read(_ count: Int, at place: Int64) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes {
                pread(number, $0.baseAddress.map { $0 + done }, count - done, Int(place) + done)
            }
            guard got >= 0 else { throw Trouble("read", path) }
            if got == 0 { break }
            done += got
        }
        return Array(bytes.prefix(done))
    }

    /// Bytes that it has now.
    func size() throws -> Int64 {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw Trouble("stat", path) }
        return Int64(status.st_size)
    }

    /// SHA-256 of what stands just before a place.
    ///
    /// Another file that was put in this one's place, or what was written behind lines that were cut off, has another.
    func tail(before place: Int64) throws -> [UInt8] {
        let start = max(0, place - Self.tailSize)
        return sha256(String(decoding: try read(Int(place - start), at: start), as: UTF8.self))
    }

    /// Gives the lines between two places, without their ends; nil for one that is too long to be looked at.
    ///
    /// Returns where it stopped: at `end`, or behind the line that used up the budget of bytes.
    func forEachLine(
        from start: Int64,
        to end: Int64,
        budget: Int,
        _ take: (ByteView?) throws -> Void
    ) throws -> Int64 {
        var position = start
        var bytes: [UInt8] = []
        var isPassing = false
        while position < end, position - start < Int64(budget) || isPassing {
            let next = position + Int64(bytes.count)
            let block = try read(min(Self.block, max(budget, 4096), Int(end - next)), at: next)
            guard !block.isEmpty else { throw Trouble("\(path) has become shorter") }
            bytes += block
            let used = try giveLines(of: bytes, &isPassing, take)
            bytes.removeFirst(used)
            position += Int64(used)
            if bytes.count > Self.longest {
                position += Int64(bytes.count)
                bytes = []
                isPassing = true
            }
            // What is committed ends with a line; a person's editor may have left a last one open.
            if position + Int64(bytes.count) >= end, !bytes.isEmpty || isPassing {
                try take(nil)
                return end
            }
        }
        return position
    }

    /// The whole lines; how many bytes they have.
    private func giveLines(
        of bytes: [UInt8],
        _ isPassing: inout Bool,
        _ take: (ByteView?) throws -> Void
    ) throws -> Int {
        try bytes.withUnsafeBytes { raw in
            let view = ByteView(raw, isMapped: false)
            var start = 0
            while start < raw.count {
                let end = view.lineFeed(from: start)
                guard end < raw.count else { break }
                if isPassing {
                    isPassing = false
                    try take(nil)
                } else {
                    try take(ByteView(view[start..<end], isMapped: false))
                }
                start = end + 1
            }
            return start
        }
    }
}
