// Giving back the memory of code that only ran at the start.
internal import Glibc

/// Unmaps the pages of files that nobody wrote to; those in use come back from the page cache.
///
/// Starting touches nearly all of a program's libraries once (linking, initialisers, libcrypto's
/// self-tests): more than half of the resident size of a gateway that has settled would be code it never
/// runs again.
enum StartUpMemory {
    static func release() {
        guard let maps = fopen("/proc/self/smaps", "r") else { return }
        defer { fclose(maps) }
        var line = [CChar](repeating: 0, count: 1024)
        var mapping: Range<UInt>?
        while fgets(&line, Int32(line.count), maps) != nil {
            let bytes = line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
            let text = String(decoding: bytes, as: UTF8.self)
            if let found = fileMapping(text) {
                mapping = found
            } else if text.hasPrefix("Anonymous:"), let range = mapping {
                mapping = nil
                // A page that was written, by the dynamic linker or by us, would be lost.
                guard text.split(separator: " ").dropFirst().first == "0" else { continue }
                madvise(
                    UnsafeMutableRawPointer(bitPattern: range.lowerBound),
                    range.count,
                    MADV_DONTNEED
                )
            }
        }
    }

    /// The addresses in the first line of a mapping, if it is of a file and cannot be written to.
    static func fileMapping(_ line: String) -> Range<UInt>? {
        let fields = line.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 6, ["r-xp", "r--p"].contains(fields[1]), fields[5].hasPrefix("/")
        else {
            return nil
        }
        let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
    }
}
