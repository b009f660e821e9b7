// Points that are sent together, read from the archive's files.
import Host
import ServerArchive
import ServerBase

/// A batch of about 1000 points or 256 KiB; the last read of 64 KiB may exceed that.
struct InfluxBatch {
    private static let maxLines = 1000
    private static let maxBytes = 256 << 10
    /// Ends a batch after this many bytes, even without points, so that a checkpoint is stored.
    private static let maxRead: Int64 = 8 << 20
    /// Bytes of a file that are read at once.
    private static let step = 64 << 10

    private(set) var lines: [String] = []
    private(set) var marks: [String: InfluxMark] = [:]
    private(set) var leftOut: Int64 = 0
    private var bytes = 0
    private var read: Int64 = 0

    var hasRoom: Bool {
        lines.count < Self.maxLines && bytes < Self.maxBytes && read < Self.maxRead
    }

    /// Reads the next lines of a file; returns whether all committed bytes have been read.
    ///
    /// `known`: the stored checkpoint.
    mutating func read(_ file: ArchiveFile, in directory: String, from known: InfluxMark)
        throws
        -> Bool
    {
        // A missing file was archived elsewhere.
        guard let open = try LineFile.open("\(directory)/\(file.path)") else { return true }
        var mark = marks[file.path] ?? known
        if mark.offset > 0, try open.tail(before: mark.offset) != mark.tail {
            mark = InfluxMark()
        }
        // The reported length may be outdated and below the checkpoint.
        guard mark.offset < file.length else { return true }
        let start = mark.offset
        mark.offset = try open.forEachLine(from: start, to: file.length, budget: Self.step) {
            receive($0, of: file, number: mark.lines)
            mark.lines += 1
        }
        invariant(mark.offset > start, "a checkpoint moves on with what was read")
        read += mark.offset - start
        mark.tail = try open.tail(before: mark.offset)
        marks[file.path] = mark
        return mark.offset >= file.length
    }

    /// `line`: nil if it cannot be read.
    private mutating func receive(_ line: RecordLine?, of file: ArchiveFile, number: Int64) {
        guard var record = line.map(InfluxRecord.init) else { return leftOut += 1 }
        let point = record.point(stream: file.stream, device: file.device, number: number)
        leftOut += Int64(record.leftOut)
        guard let point else { return }
        lines.append(point)
        bytes += point.utf8.count
    }
}
