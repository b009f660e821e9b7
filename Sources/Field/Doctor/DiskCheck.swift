// Checks free space, permissions and the database.
import CLinux
import Configuration
import Glibc
import Host
import Queue
import Records
import Setup
import Status

struct DiskCheck {
    let input: DoctorInput

    private var directory: String { input.configuration.stateDirectory }

    var findings: [Finding] {
        var figures = stat()
        guard stat(directory, &figures) == 0 else {
            let why = String(cString: strerror(errno))
            let next = "start the service once, which makes it, or check state_directory"
            return [.fail("disk", "\(directory): \(why)", next: next)]
        }
        return [room, memory, rights(figures), database(in: figures)].compactMap { $0 }
    }

    /// Fails if the state directory is in memory, where a power cut loses pending records.
    private var memory: Finding? {
        let mounts = input.files.text("/proc/self/mounts", limit: 1 << 18) ?? ""
        return memoryWarning(directory, mounts).map { trouble in
            .fail(
                "disk",
                trouble,
                next: isOverlayInMemory(directory, mounts)
                    ? "end the overlay (`sudo raspi-config`, Performance), or mount a disk there"
                    : "mount a disk there, or set state_directory to a folder on one"
            )
        }
    }

    private var room: Finding {
        var system = statvfs()
        guard statvfs(directory, &system) == 0 else {
            let why = String(cString: strerror(errno))
            return .fail("disk", "\(directory): \(why)", next: "check the disk: `dmesg | tail`")
        }
        guard system.f_flag & UInt(ST_RDONLY) == 0 else {
            return .fail(
                "disk",
                "\(directory) is on a read-only file system",
                next: "check the card: `dmesg | grep -i error`, then `mount -o remount,rw`"
            )
        }
        let free = FileSpace.free(directory) ?? 0
        let message = "\(roughSize(free)) free at \(directory)"
        let limits = input.configuration.storage.limits
        let advice = "free some space, or lower `storage.retention`"
        let total = FileSpace.total(directory) ?? 0
        if let small = sizeWarning(directory, bytes: total, criticalFree: limits.criticalFree) {
            return .fail("disk", small, next: "use a larger one, or lower `storage.critical_free`")
        }
        if free < Int64(limits.criticalFree) {
            return .fail("disk", "\(message): audio is not recorded any more", next: advice)
        }
        if free < Int64(limits.warnFree) { return .warn("disk", message, next: advice) }
        return .ok("disk", message)
    }

    /// Fails if the gateway runs as another user than the folder's owner: it cannot store anything.
    private func rights(_ figures: stat) -> Finding? {
        let pid = input.report?.daemon.pid
        var process = stat()
        guard let pid, pid > 0, stat("/proc/\(pid)", &process) == 0,
            process.st_uid != 0, process.st_uid != figures.st_uid
        else { return nil }
        return .fail(
            "disk",
            "\(directory) belongs to another user than the gateway runs as",
            next: "`sudo chown -R waypost: \(directory)`"
        )
    }

    private func database(in folder: stat) -> Finding? {
        let path = Configuration.databasePath(in: directory)
        guard access(path, F_OK) == 0 || errno == EACCES else {
            return .warn(
                "database",
                "\(path) is not there yet",
                next: "it is made at the first start"
            )
        }
        var figures = stat()
        // The directory's owner may have put a link or a pipe there, and root would follow it.
        guard lstat(path, &figures) != 0 || figures.st_mode & S_IFMT == S_IFREG else {
            return .fail(
                "database",
                "\(path) is not a regular file and was not opened",
                next: "find out who put it there: `ls -l \(path)`"
            )
        }
        guard access(path, R_OK) == 0 else {
            return .warn("database", "\(path) cannot be read by you", next: "`sudo waypost doctor`")
        }
        // Root reads and writes what the service's user may not.
        guard figures.st_uid == folder.st_uid || folder.st_uid == 0 else {
            return .fail(
                "database",
                "\(path) belongs to another user than \(directory), the gateway's",
                next: "`sudo chown -R --reference=\(directory) \(directory)`"
            )
        }
        switch DatabaseProbe(path, limit: .seconds(3)) {
        case .sound: return .ok("database", "\(path) is intact")
        case .unfinished:
            return .ok("database", "\(path) opens; no damage found in 3 s, not all of it was read")
        case .damaged(let message):
            return .fail(
                "database",
                "\(path) is damaged: \(message)",
                next: "restart the service: it quarantines the database and saves readable records"
            )
        case .held(let message):
            return .warn(
                "database",
                "\(path): \(message)",
                next: "end that program: records wait in memory while it holds the database"
            )
        case .tooNew(let message):
            return .fail(
                "database",
                "\(path): the gateway does not start: \(message)",
                next: "install the newer version again: `apt list -a waypost` names them"
            )
        case .foreign(let message):
            return .fail(
                "database",
                "\(path): the gateway does not start",
                next: message
            )
        case .unreadable(let message):
            return .fail("database", message, next: "check the disk, and who owns the file")
        }
    }
}
