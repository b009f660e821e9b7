// Tables of mounted file systems.
import Configuration
import Host

/// The words of each line of fstab(5) or /proc/self/mounts: device, folder, type and options, without comments.
func mountTable(_ text: String) -> [[Substring]] {
    text.split(separator: "\n")
        .map { $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) }
        .filter { $0.count > 1 && !$0[0].hasPrefix("#") }
}

/// What is mounted now, as `mountTable` takes it.
func currentMounts() -> String { SmallText.read("/proc/self/mounts", limit: 1 << 18) ?? "" }

/// Whether what is written in a folder goes into memory, and with the power: an overlay above the disk, as Raspberry Pi OS and
/// live systems have it.
func isOverlayInMemory(_ folder: String, _ mounts: String) -> Bool {
    let table = mountTable(mounts).filter { $0.count > 3 }
    let upper = "upperdir="
    guard let mount = lastMount(of: folder, table), mount[2] == "overlay",
        let option = mount[3].split(separator: ",").first(where: { $0.hasPrefix(upper) })
    else { return false }
    // The folder is named as the initramfs saw it. A service may see nothing there: systemd puts a file system in memory over
    // what is forbidden (`ProtectHome=`), which takes no file.
    let below = lastMount(of: String(option.dropFirst(upper.count)), table)
    return below?[2] == "tmpfs" && below?[3].split(separator: ",").contains("rw") == true
}

/// What a person has to know of a state directory in such a place; nil where it is in none.
func memoryTrouble(_ directory: String, _ mounts: String) -> String? {
    if isOverlayInMemory(directory, mounts) {
        return
            "\(directory) is in memory, an overlay above the disk: the power takes what waits there"
    }
    let type = lastMount(of: directory, mountTable(mounts).filter { $0.count > 3 })?[2]
    guard let type, type == "tmpfs" || type == "ramfs" else { return nil }
    return "\(directory) is in memory, a \(type): the power takes what waits there"
}

/// What a person has to know of a state directory whose file system is too small to be ever enough; nil where it is not.
func sizeTrouble(_ directory: String, bytes: Int64, criticalFree: Int64) -> String? {
    guard bytes > 0, bytes < criticalFree else { return nil }
    return
        "the file system of \(directory) has \(sizeText(bytes)) in all, less than storage.critical_free "
        + "(\(sizeText(criticalFree))): audio is never recorded"
}

/// The line of the file system that a path is on: the deepest folder, of several there the last.
private func lastMount(of path: String, _ table: [[Substring]]) -> [Substring]? {
    table.filter { $0[1] == "/" || path == $0[1] || path.hasPrefix($0[1] + "/") }
        .reduce(nil) { best, next in
            next[1].count >= best?[1].count ?? 0 ? next : best
        }
}
