// Checks the card for errors in the kernel log, and for file systems that became read-only.
import CLinux
import Glibc
import Host
import Setup
import Status

struct CardCheck {
    /// Messages that drivers and file systems log for a failing medium.
    private static let marks = [
        "I/O error, dev ", "Buffer I/O error", "EXT4-fs error", "FAT-fs (", "F2FS-fs (",
        "critical medium error", "Medium Error", "mmc0: error", "mmc1: error", "mmc0: Timeout",
        "mmc1: Timeout", "mmcblk0: error", "mmcblk1: error", "mmcblk0: recovery failed",
        "Remounting filesystem read-only", "previous I/O error to superblock",
    ]

    let input: DoctorInput
    private var files: SystemFiles { input.files }

    var findings: [Finding] { [finding] }

    private var finding: Finding {
        let readOnly = madeReadOnly
        guard readOnly.isEmpty else {
            return .fail(
                "card",
                "the kernel made \(readOnly.joined(separator: " and ")) read-only",
                next: "save what is on it (`waypost sync`, `waypost export`), replace the card"
            )
        }
        guard let log = kernelLog else {
            return .ok("card", "nothing is read-only; only root may read the kernel's log")
        }
        let own = ownDisks
        let errors = log.filter { line in Self.marks.contains { line.contains(text: $0) } }
            .filter {
                !$0.contains(text: "FAT-fs (") || $0.contains(text: "error")
                    || $0.contains(text: "corrupt")
            }
            .filter { !Self.isAboutAnother($0, than: own) }
        guard let last = errors.last else {
            return .ok("card", "no errors in the kernel's log since the boot")
        }
        let what =
            "\(counted(errors.count, "error")) in the kernel's log, the last: \(last.plainWords(atMost: 120))"
        return .warn("card", what, next: "replace the card soon; a weak supply does this, too")
    }

    /// File systems that are writable in /etc/fstab and now mounted read-only.
    private var madeReadOnly: [String] {
        let wanted = table("/etc/fstab").filter { !$0.options.contains("ro") }.map(\.folder)
        let mounted = table("/proc/self/mounts")
        return wanted.filter { folder in
            mounted.last { $0.folder == folder }?.options.contains("ro") == true
        }
    }

    private func table(
        _ path: String
    ) -> [(device: Substring, folder: String, options: [Substring])] {
        mountTable(files.text(path, limit: 1 << 18) ?? "").compactMap { words in
            guard words.count > 3, words[1].hasPrefix("/") else { return nil }
            return (words[0], String(words[1]), words[3].split(separator: ","))
        }
    }

    /// Returns whether a message names a disk without parts of the system: a stick or an image.
    private static func isAboutAnother(_ message: Substring, than own: Set<String>) -> Bool {
        let words = message.split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
        guard let named = words.firstResult(disk) else { return false }
        return own.isEmpty ? named.hasPrefix("loop") : !own.contains(named)
    }

    /// The disks that hold the folders of fstab(5), the root and the state directory.
    private var ownDisks: Set<String> {
        let folders = table("/etc/fstab").map(\.folder) + ["/", "/data"]
        let state = input.configuration.stateDirectory + "/"
        let mounted = table("/proc/self/mounts").filter { entry in
            folders.contains(entry.folder) || state.hasPrefix(entry.folder + "/")
        }
        return Set(
            mounted.compactMap { entry in
                guard entry.device.hasPrefix("/dev/") else { return nil }
                return Self.disk(entry.device.dropFirst(5))
            }
        )
    }

    /// Returns the disk of a kernel device name: `mmcblk0` for `mmcblk0p2`, `sda` for `sda1`.
    private static func disk(_ name: Substring) -> String? {
        for kind in ["mmcblk", "nvme", "loop"] where name.hasPrefix(kind) {
            let rest = name.dropFirst(kind.count).prefix { $0 != "p" }
            return rest.first?.isNumber == true ? kind + rest : nil
        }
        let letters = name.prefix { $0.isLowercase }
        guard (3...4).contains(letters.count), letters.hasPrefix("sd") || letters.hasPrefix("vd"),
            name[letters.endIndex...].allSatisfy(\.isNumber)
        else { return nil }
        return String(letters)
    }

    /// The kernel's messages since boot, as far as it keeps them; nil if they cannot be read.
    ///
    /// Each is `PRIORITY,NUMBER,TIME,FLAGS;TEXT` (dev-kmsg); one per read, which does not block.
    private var kernelLog: [Substring]? {
        let path = files.root + "/dev/kmsg"
        guard let log = try? Descriptor(opening: path, O_RDONLY | O_NONBLOCK) else { return nil }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 8192)
        while bytes.count < 8 << 20 {
            let count = read(log.number, &block, block.count)
            // EPIPE: some were overwritten in the meantime; the next read continues behind them.
            if count < 0, errno == EPIPE || errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += block.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            guard !line.hasPrefix(" "), let mark = line.firstIndex(of: ";") else { return nil }
            return line[line.index(after: mark)...]
        }
    }
}
