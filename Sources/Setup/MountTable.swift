// Parses tables of mounted file systems and finds storage that does not survive a power cut.
import Configuration
import Host

/// Returns the fields of each line of fstab(5) or /proc/self/mounts: device, folder, type, options.
///
/// Skips comments.
package func mountTable(_ text: String) -> [[Substring]] {
    text.split(separator: "\n")
        .map { $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) }
        .filter { $0.count > 1 && !$0[0].hasPrefix("#") }
}

/// Returns the text of /proc/self/mounts, for `mountTable`.
package func currentMounts() -> String { SmallText.read("/proc/self/mounts", limit: 1 << 18) ?? "" }

/// Returns whether a folder is on an overlay in memory, so that its files are lost with the power.
///
/// Raspberry Pi OS and live systems can mount such an overlay above the disk.
package func isOverlayInMemory(_ folder: String, _ mounts: String) -> Bool {
    let table = mountTable(mounts).filter { $0.count > 3 }
    let upper = "upperdir="
    guard let mount = lastMount(of: folder, table), mount[2] == "overlay",
        let option = mount[3].split(separator: ",").first(where: { $0.hasPrefix(upper) })
    else { return false }
    // The upper folder is named as the initramfs saw it. A service may see nothing there: systemd
    // mounts a read-only tmpfs over forbidden folders (`ProtectHome=`).
    let below = lastMount(of: String(option.dropFirst(upper.count)), table)
    return below?[2] == "tmpfs" && below?[3].split(separator: ",").contains("rw") == true
}

/// Returns a warning about a state directory in memory, or nil.
package func memoryWarning(_ directory: String, _ mounts: String) -> String? {
    if isOverlayInMemory(directory, mounts) {
        return
            "\(directory) is in memory, an overlay above the disk: its records are lost when the power fails"
    }
    let type = lastMount(of: directory, mountTable(mounts).filter { $0.count > 3 })?[2]
    guard let type, type == "tmpfs" || type == "ramfs" else { return nil }
    return "\(directory) is in memory, a \(type): its records are lost when the power fails"
}

/// Returns a warning about a file system that is smaller than `criticalFree`, or nil.
package func sizeWarning(_ directory: String, bytes: Int64, criticalFree: Int64) -> String? {
    guard bytes > 0, bytes < criticalFree else { return nil }
    return
        "the file system of \(directory) has \(sizeText(bytes)) in all, less than storage.critical_free "
        + "(\(sizeText(criticalFree))): audio is never recorded"
}

/// Returns the line of the file system that holds a path: the deepest folder, the last of several.
private func lastMount(of path: String, _ table: [[Substring]]) -> [Substring]? {
    table.filter { $0[1] == "/" || path == $0[1] || path.hasPrefix($0[1] + "/") }
        .reduce(nil) { best, next in
            next[1].count >= best?[1].count ?? 0 ? next : best
        }
}
