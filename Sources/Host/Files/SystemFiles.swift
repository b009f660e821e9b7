// Files in which the kernel and systemd publish state.
import CLinux
import Glibc

/// Reads files below a root folder.
package struct SystemFiles: Sendable {
    package let root: String

    /// Uses `root` in place of `/`, for tests.
    package init(root: String = "") {
        self.root = root
    }

    /// Returns a small file's text without trailing white space; nil if it cannot be read.
    package func text(_ path: String, limit: Int = 16 << 10) -> String? {
        guard let text = SmallText.read(root + path, limit: limit) else { return nil }
        guard let end = text.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(text[...end])
    }

    /// Returns the target of a symbolic link as written; nil for anything else.
    package func target(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink(root + path, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// Returns true if the path exists; a dangling symbolic link counts.
    package func isThere(_ path: String) -> Bool { fileKind(root + path) != 0 }

    /// Returns the names in a folder, sorted, without dot files.
    package func names(in folder: String) -> [String] { Host.names(inFolder: root + folder) }

    /// Returns the effective capabilities of a process, one bit each (capabilities(7)).
    package func capabilities(of process: String) -> UInt64 {
        let status = text("/proc/\(process)/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        return line.flatMap { UInt64($0.dropFirst(7).filter { $0.isHexDigit }, radix: 16) } ?? 0
    }
}
