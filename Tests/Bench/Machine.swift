// The machine of the measurement: processor, file system, kind of disk.
import Glibc
import JSON
import Queue

/// The machine, as far as it matters for the figures.
struct Machine {
    var cpu: String
    var cores: Int
    var fileSystem = "unknown file system"
    var disk = "unknown disk"

    /// `folder`: where the databases are.
    init(folder: String) {
        let info = ProcessFile.text("/proc/cpuinfo").split(separator: "\n")
        // Boards name themselves in `Model`, PCs name the processor in `model name`.
        let name = ["Model", "model name"].lazy.compactMap { key in
            info.first { $0.prefix { $0 != ":" && $0 != "\t" } == key }
        }.first
        cpu =
            name?.split(separator: ":", maxSplits: 1).last.map { String($0.drop { $0 == " " }) }
            ?? "unknown processor"
        cores = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        guard let mount = Self.mount(of: folder) else { return }
        fileSystem = mount.type
        disk = Self.disk(mount)
    }

    /// Its fields, among those of an object.
    func write(to json: inout JSONWriter) {
        json.field("cpu", cpu)
        json.field("cores", Int64(cores))
        json.field("file_system", fileSystem)
        json.field("disk", disk)
    }

    private struct Mount {
        var point: String
        var device: String
        var type: String
        var source: String
    }

    /// The mount with the longest path that leads to the folder (proc(5), `mountinfo`).
    private static func mount(of folder: String) -> Mount? {
        guard let resolved = realpath(folder, nil) else { return nil }
        defer { free(resolved) }
        let path = String(cString: resolved)
        let lines = ProcessFile.text("/proc/self/mountinfo").split(separator: "\n")
        let mounts = lines.compactMap { line -> Mount? in
            let fields = line.split(separator: " ").map(String.init)
            guard let dash = fields.firstIndex(of: "-"), fields.count > dash + 2 else { return nil }
            return Mount(
                point: fields[4],
                device: fields[2],
                type: fields[dash + 1],
                source: fields[dash + 2]
            )
        }
        return mounts.filter { $0.point == "/" || (path + "/").hasPrefix($0.point + "/") }
            .max { $0.point.utf8.count < $1.point.utf8.count }
    }

    private static func disk(_ mount: Mount) -> String {
        let name = mount.source.split(separator: "/").last.map(String.init) ?? ""
        if mount.type == "tmpfs" { return "memory" }
        if name.hasPrefix("mmcblk") { return "SD card or eMMC" }
        if name.hasPrefix("nvme") { return "NVMe" }
        if name.hasPrefix("vd") || name.hasPrefix("xvd") { return "virtual disk" }
        for place in ["queue", "../queue"] {
            let text = ProcessFile.text("/sys/dev/block/\(mount.device)/\(place)/rotational")
            if text.hasPrefix("0") { return "SSD" }
            if text.hasPrefix("1") { return "hard disk" }
        }
        return "unknown disk"
    }
}

/// A folder for the databases, gone with its owner.
final class ScratchFolder {
    let path: String
    private var count = 0

    /// Throws when nothing can be made in `parent`.
    init(in parent: String) throws {
        var template = Array("\(parent)/waypost-bench.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw BenchFailure(
                "\(parent): \(String(cString: strerror(errno))); name another folder with --directory"
            )
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        clear()
        rmdir(path)
    }

    /// A name for a new database.
    func database() -> String {
        count += 1
        return "\(path)/\(count).sqlite"
    }

    /// Deletes all files in it, or those whose names begin so.
    func clear(_ prefix: String = "") {
        for name in SystemDisk().names(in: path) where name.hasPrefix(prefix) {
            // The folder itself and the one above it are no files.
            unlink("\(path)/\(name)")
        }
    }
}
