// A database file that was cut short, made long enough again for SQLite to look into it.
import SQLite

/// SQLite refuses a file that is shorter than its header says, and deletes the journal beside an empty one.
///
/// Zeros in place of what is missing (a hole in the file, no space) let it read all the rest.
enum DamagedFile {
    /// Cuts a page that is there in part: SQLite takes zeros for the rest, and a row of it would say something else.
    ///
    /// After a power cut the journal has it once more; where nothing has it, it is missing, and that is seen.
    static func dropHalfPage(_ path: String, on disk: any QueueDisk) throws {
        let size = disk.size(path)
        guard let page = try header(path, disk)?.page, size > page, size % page != 0 else { return }
        // On the disk before it is made longer: else a power cut can leave the half page, and zeros behind it.
        try disk.extend(path, to: size - size % page)
    }

    static func extend(_ path: String, on disk: any QueueDisk) throws {
        let size = disk.size(path)
        guard let bytes = try wantedBytes(path, disk), bytes > size else { return }
        try dropHalfPage(path, on: disk)
        try disk.extend(path, to: bytes)
    }

    /// As long as the database should be, by its header or by the last commit in its journal.
    private static func wantedBytes(_ path: String, _ disk: any QueueDisk) throws -> Int64? {
        let commit = try lastCommit(in: path + "-wal", disk)
        return try [header(path, disk)?.bytes, commit?.bytes].compactMap { $0 }.max()
    }

    /// Throws damage where SQLite takes the database for one of a newer SQLite, that it may read and not write.
    static func checkHeader(_ path: String, on disk: any QueueDisk) throws {
        let version = try disk.read(path, at: 18, count: 1).first ?? 1
        guard version > 2 else { return }
        throw SQLiteError(code: 11, message: "\(path) is of version \(version)", statement: "")
    }

    /// What the first page says (sqlite.org/fileformat2.html, section 1.3).
    private static func header(
        _ path: String,
        _ disk: any QueueDisk
    ) throws -> (bytes: Int64, page: Int64)? {
        let header = try disk.read(path, at: 0, count: 100)
        guard header.count == 100, Array(header.prefix(16)) == Array("SQLite format 3\0".utf8)
        else { return nil }
        let size = Int64(header[16]) << 8 | Int64(header[17])
        let page = size == 1 ? 65_536 : size
        return sane(page, pages: big(header, 28)).map { ($0, page) }
    }

    /// Pages that the database should have, and that neither its file nor its journal has: the first thousand.
    ///
    /// SQLite takes zeros for them without a word where the journal says how long the database is. Without a journal
    /// it finds by itself that the file is too short.
    static func missingPages(_ path: String, on disk: any QueueDisk) throws -> [Int64] {
        guard let page = try header(path, disk)?.page else { return [] }
        let there = disk.size(path) / page
        guard let journal = try lastCommit(in: path + "-wal", disk, beyond: there) else {
            return []
        }
        let wanted = max(there, journal.bytes / page)
        // A damaged journal may speak of a thousand million pages.
        return Array(
            (there..<wanted).lazy.map { $0 + 1 }.filter { !journal.pages.contains($0) }.prefix(1000)
        )
    }

    /// The size after the last commit of a journal (sqlite.org/walformat.html, section 2), and the pages that it has
    /// beyond a number; nil where it has no commit.
    private static func lastCommit(
        in path: String,
        _ disk: any QueueDisk,
        beyond there: Int64 = .max
    ) throws -> (bytes: Int64, pages: Set<Int64>)? {
        let header = try disk.read(path, at: 0, count: 32)
        guard header.count == 32, big(header, 0) & ~1 == 0x377F_0682 else { return nil }
        let pageSize = big(header, 8)
        guard (512...65_536).contains(pageSize) else { return nil }
        let (salts, step) = (header[16..<24], 24 + Int(pageSize))
        var (pages, after): (Set<Int64>, Int64) = ([], 0)
        var place: Int64 = 32
        frames: while true {
            let block = try disk.read(path, at: place, count: 64 * step)
            for start in stride(from: 0, to: block.count, by: step) {
                let frame = Array(block[start..<min(start + 24, block.count)])
                // Frames with other salts are of a run of the journal before this one.
                guard frame.count == 24, frame[8..<16].elementsEqual(salts) else { break frames }
                if big(frame, 0) > there { pages.insert(big(frame, 0)) }
                if big(frame, 4) > 0 { after = big(frame, 4) }
            }
            guard block.count == 64 * step else { break }
            place += Int64(block.count)
        }
        return after > 0 ? sane(pageSize, pages: after).map { ($0, pages) } : nil
    }

    /// A terabyte is more than any queue has: a damaged number.
    private static func sane(_ pageSize: Int64, pages: Int64) -> Int64? {
        let (bytes, overflow) = pageSize.multipliedReportingOverflow(by: pages)
        return !overflow && bytes <= 1 << 40 && pageSize > 0 ? bytes : nil
    }

    private static func big(_ bytes: [UInt8], _ at: Int) -> Int64 {
        bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int64($1) }
    }
}
