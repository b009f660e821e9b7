// What the kernel and systemd tell in files.
import CLinux
import Glibc

/// Looks files up under a root.
package struct SystemFiles: Sendable {
    package let root: String

    /// `root`: a folder in place of `/`, for tests.
    package init(root: String = "") {
        self.root = root
    }

    /// A small file's text without blanks at its end; nil where it cannot be read.
    package func text(_ path: String, limit: Int = 16 << 10) -> String? {
        guard let text = SmallText.read(root + path, limit: limit) else { return nil }
        guard let end = text.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(text[...end])
    }

    /// Where a symbolic link leads, as it is written; nil for anything else.
    package func target(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink(root + path, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// A symbolic link counts, wherever it leads.
    package func isThere(_ path: String) -> Bool {
        var figures = stat()
        return lstat(root + path, &figures) == 0
    }

    /// Names in a folder, sorted, without those that begin with a dot.
    package func names(in folder: String) -> [String] { Host.names(inFolder: root + folder) }

    /// The effective capabilities of a process, a bit each (capabilities(7)).
    package func capabilities(of process: String) -> UInt64 {
        let status = text("/proc/\(process)/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        return line.flatMap { UInt64($0.dropFirst(7).filter { $0.isHexDigit }, radix: 16) } ?? 0
    }
}
