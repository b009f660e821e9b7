// What the kernel and systemd tell in files.
internal import CLinux
internal import Glibc
internal import Host

/// Looks files up under a root.
struct SystemFiles: Sendable {
    var root: String

    /// A small file's text without blanks at its end; nil where it cannot be read.
    func text(_ path: String, limit: Int = 16 << 10) -> String? {
        guard let text = SmallText.read(root + path, limit: limit) else { return nil }
        return text.split(separator: "\n", omittingEmptySubsequences: true).joined(separator: "\n")
    }

    /// Where a symbolic link leads, as it is written; nil for anything else.
    func target(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink(root + path, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// A symbolic link counts, wherever it leads.
    func isThere(_ path: String) -> Bool {
        var figures = stat()
        return lstat(root + path, &figures) == 0
    }

    /// Names in a folder, sorted.
    func names(in folder: String) -> [String] {
        guard let open = opendir(root + folder) else { return [] }
        defer { closedir(open) }
        var found: [String] = []
        while let entry = readdir(open) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { found.append(name) }
        }
        return found.sorted()
    }

    /// The effective capabilities of a process, a bit each (capabilities(7)).
    func capabilities(of process: String) -> UInt64 {
        let status = text("/proc/\(process)/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        return line.flatMap { UInt64($0.dropFirst(7).filter { $0.isHexDigit }, radix: 16) } ?? 0
    }
}
