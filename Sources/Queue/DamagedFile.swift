// A database file that was cut short, made long enough again for SQLite to look into it.

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
        try [header(path, disk)?.bytes, bytesOfJournal(path + "-wal", disk)].compactMap { $0 }.max()
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
        guard let page = try header(path, disk)?.page,
            let bytes = try bytesOfJournal(path + "-wal", disk)
        else { return [] }
        let there = disk.size(path) / page
        guard bytes / page > there else { return [] }
        var written: Set<Int64> = []
        _ = try eachFrame(path + "-wal", disk) { number, _ in
            if number > there { written.insert(number) }
        }
        // A damaged journal may speak of a thousand million pages.
        return Array((there + 1...bytes / page).lazy.filter { !written.contains($0) }.prefix(1000))
    }

    /// The size after the last commit of a journal.
    private static func bytesOfJournal(_ path: String, _ disk: any QueueDisk) throws -> Int64? {
        var pages: Int64 = 0
        let pageSize = try eachFrame(path, disk) { _, after in if after > 0 { pages = after } }
        return pages > 0 ? pageSize.flatMap { sane($0, pages: pages) } : nil
    }

    /// Calls `body` with the page of each frame of a journal, and the pages of the database after it, if it ends a
    /// commit (sqlite.org/walformat.html, section 2); returns the size of a page, nil where it is no journal.
    private static func eachFrame(
        _ path: String,
        _ disk: any QueueDisk,
        _ body: (_ page: Int64, _ after: Int64) -> Void
    ) throws -> Int64? {
        let header = try disk.read(path, at: 0, count: 32)
        guard header.count == 32, big(header, 0) & ~1 == 0x377F_0682 else { return nil }
        let pageSize = big(header, 8)
        guard (512...65_536).contains(pageSize) else { return nil }
        let (salts, step) = (header[16..<24], 24 + Int(pageSize))
        var place: Int64 = 32
        while true {
            let block = try disk.read(path, at: place, count: 64 * step)
            for start in stride(from: 0, to: block.count, by: step) {
                let frame = Array(block[start..<min(start + 24, block.count)])
                // Frames with other salts are of a run of the journal before this one.
                guard frame.count == 24, frame[8..<16].elementsEqual(salts) else { return pageSize }
                body(big(frame, 0), big(frame, 4))
            }
            guard block.count == 64 * step else { return pageSize }
            place += Int64(block.count)
        }
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
