// Extends a truncated database file so that SQLite can read the rest.
import SQLite

/// Repairs the length of a truncated database file.
///
/// SQLite rejects a file that is shorter than its header says, and deletes the WAL next to an empty
/// one. Zeros in place of the missing part (a hole, no disk space) let SQLite read the rest.
enum DamagedFile {
    /// Truncates a partial last page: SQLite would read zeros for its rest, and so wrong values.
    ///
    /// After a power cut the WAL has the page again; if nothing has it, it is detected as missing.
    static func dropHalfPage(_ path: String, on disk: any QueueDisk) throws {
        let size = disk.size(path)
        guard let page = try header(path, disk)?.page, size > page, size % page != 0 else { return }
        // Sync this before the file is extended: otherwise a power cut could leave the partial page
        // followed by zeros.
        try disk.extend(path, to: size - size % page)
    }

    static func extend(_ path: String, on disk: any QueueDisk) throws {
        let size = disk.size(path)
        guard let bytes = try wantedBytes(path, disk), bytes > size else { return }
        try dropHalfPage(path, on: disk)
        try disk.extend(path, to: bytes)
    }

    /// Returns the size the database should have, by its header or by the last commit in its WAL.
    private static func wantedBytes(_ path: String, _ disk: any QueueDisk) throws -> Int64? {
        let commit = try lastCommit(in: path + "-wal", disk)
        return try [header(path, disk)?.bytes, commit?.bytes].compactMap { $0 }.max()
    }

    /// Throws damage if the header claims a newer SQLite, whose files may be read but not written.
    static func checkHeader(_ path: String, on disk: any QueueDisk) throws {
        let version = try disk.read(path, at: 18, count: 1).first ?? 1
        guard version > 2 else { return }
        let message = "\(path) has SQLite format version \(version)"
        throw SQLiteError(code: 11, message: message, statement: "")
    }

    /// Reads size and page size from the first page (sqlite.org/fileformat2.html, section 1.3).
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

    /// Returns pages, at most a thousand, that neither the file nor its WAL has, but should.
    ///
    /// SQLite silently reads zeros for them if the WAL says how long the database is. Without a WAL
    /// it detects by itself that the file is too short.
    static func missingPages(_ path: String, on disk: any QueueDisk) throws -> [Int64] {
        guard let page = try header(path, disk)?.page else { return [] }
        let there = disk.size(path) / page
        guard let journal = try lastCommit(in: path + "-wal", disk, beyond: there) else {
            return []
        }
        let wanted = max(there, journal.bytes / page)
        // A damaged WAL may claim a thousand million pages.
        return Array(
            (there..<wanted).lazy.map { $0 + 1 }.filter { !journal.pages.contains($0) }.prefix(1000)
        )
    }

    /// Returns the size after a WAL's last commit (sqlite.org/walformat.html, section 2), and its
    /// pages with numbers above `there`; nil if it does not have a commit.
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
                // Frames with other salts belong to an earlier generation of the WAL.
                guard frame.count == 24, frame[8..<16].elementsEqual(salts) else { break frames }
                if big(frame, 0) > there { pages.insert(big(frame, 0)) }
                if big(frame, 4) > 0 { after = big(frame, 4) }
            }
            guard block.count == 64 * step else { break }
            place += Int64(block.count)
        }
        return after > 0 ? sane(pageSize, pages: after).map { ($0, pages) } : nil
    }

    /// Rejects more than a terabyte: queues are smaller, so the number is damaged.
    private static func sane(_ pageSize: Int64, pages: Int64) -> Int64? {
        let (bytes, overflow) = pageSize.multipliedReportingOverflow(by: pages)
        return !overflow && bytes <= 1 << 40 && pageSize > 0 ? bytes : nil
    }

    private static func big(_ bytes: [UInt8], _ at: Int) -> Int64 {
        bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int64($1) }
    }
}
