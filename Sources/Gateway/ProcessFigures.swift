// What the process uses, from /proc.
internal import CLinux
internal import Glibc

/// Memory, time and bytes written of this process.
struct ProcessFigures {
    var residentBytes: Int64 = 0
    var cpuSeconds = 0.0
    /// Bytes handed to the storage layer since the process began (proc(5), `write_bytes`).
    var writtenBytes: Int64 = 0

    init() {
        residentBytes = Self.field("VmRSS:", of: "/proc/self/status") * 1024
        writtenBytes = Self.field("write_bytes:", of: "/proc/self/io")
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        cpuSeconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func field(_ name: String, of path: String) -> Int64 {
        let text = SmallText.read(path) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
            .flatMap { Int64($0) } ?? 0
    }
}

/// Small files as text.
enum SmallText {
    /// The first 16 kB of a file; nil where it cannot be read.
    static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 16 << 10)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

/// Giving back the memory of code that only ran at the start.
enum StartUpMemory {
    /// Unmaps the pages of program text; those that are used come back from the page cache.
    ///
    /// Starting touches nearly all of it once (linking, initialisers, libcrypto's self-tests): two thirds
    /// of the resident size of a gateway that has settled would be code it never runs again.
    static func release() {
        guard let maps = fopen("/proc/self/maps", "r") else { return }
        defer { fclose(maps) }
        var line = [CChar](repeating: 0, count: 1024)
        while fgets(&line, Int32(line.count), maps) != nil {
            let text = String(
                decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
                as: UTF8.self
            )
            guard let range = textRange(text) else { continue }
            // Private, file-backed and never written: dropping the pages loses nothing.
            madvise(
                UnsafeMutableRawPointer(bitPattern: range.lowerBound),
                range.count,
                MADV_DONTNEED
            )
        }
    }

    /// The address range of a line of /proc/self/maps that is executable and belongs to a file.
    private static func textRange(_ line: String) -> Range<UInt>? {
        let fields = line.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 6, fields[1] == "r-xp", fields[5].hasPrefix("/") else { return nil }
        let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
    }
}
