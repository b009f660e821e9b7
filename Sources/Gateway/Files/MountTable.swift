// Tables of mounted file systems.
internal import Host

/// The words of each line of fstab(5) or /proc/self/mounts: device, folder, type and options, without comments.
func mountTable(_ text: String) -> [[Substring]] {
    text.split(separator: "\n")
        .map { $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) }
        .filter { $0.count > 1 && !$0[0].hasPrefix("#") }
}

/// What is mounted now, as `mountTable` takes it.
func currentMounts() -> String { SmallText.read("/proc/self/mounts", limit: 1 << 18) ?? "" }
