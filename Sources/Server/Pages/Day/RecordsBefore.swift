// Reads a record file backwards.
import ServerBase

/// Records before a place in a file, newest first, in bounded memory and time.
struct RecordsBefore {
    static let maximum = 25
    /// More than the longest line, so that a block has the beginning of a line.
    private static let block = Int64(2 * LineFile.longest)
    /// Bytes that are searched for one page.
    private static let budget: Int64 = 32 << 20

    private(set) var records: [FlatRecord] = []
    /// Where older records end that fit or were not searched; nil if there are none.
    private(set) var older: Int64?

    /// `end`: the end of a line; from a place within a line the whole lines before it are read.
    init(
        _ file: borrowing LineFile,
        before end: Int64,
        fits: (RecordLine) -> Bool
    ) throws {
        var place = min(max(end, 0), try file.size())
        let last = max(0, place - Self.budget)
        // The beginning of the last record of a full page.
        var full: Int64?
        while place > 0 {
            guard place > last else {
                older = place
                return
            }
            let start = max(0, place - Self.block)
            let bytes = try file.read(Int(place - start), at: start)
            let isDone = bytes.withUnsafeBytes { bytes in
                Self.forEachLine(of: bytes, isWhole: start == 0) { line, offset in
                    let line = ByteView(UnsafeRawBufferPointer(rebasing: line), isMapped: false)
                    place = start + Int64(offset)
                    guard let record = RecordLine(line), record.identity != nil, fits(record) else {
                        return false
                    }
                    guard full == nil else { return true }
                    records.append(FlatRecord(record))
                    if records.count == Self.maximum { full = place }
                    return false
                }
            }
            if isDone {
                older = full
                return
            }
            // A line longer than a block is not shown.
            if place > start, start > 0, place - start == Int64(bytes.count) { place = start }
        }
    }

    /// Passes on the lines, last one first, with their offsets, until `receive` returns true.
    ///
    /// `isWhole`: the first line begins here; otherwise it is left out. Returns whether `receive`
    /// returned true.
    private static func forEachLine(
        of bytes: UnsafeRawBufferPointer,
        isWhole: Bool,
        _ receive: (Slice<UnsafeRawBufferPointer>, Int) -> Bool
    ) -> Bool {
        var end = bytes.count
        while end > 0 {
            let text = bytes[end - 1] == 10 ? end - 1 : end
            let feed = bytes[..<text].lastIndex(of: 10)
            guard feed != nil || isWhole else { return false }
            let start = feed.map { $0 + 1 } ?? 0
            if receive(bytes[start..<text], start) { return true }
            end = start
        }
        return false
    }
}
