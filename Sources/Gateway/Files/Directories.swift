// The directories that the gateway writes to, made and tried before anything relies on them.
import CLinux
import Glibc
package import Host

extension Configuration {
    /// Makes the state and the runtime directory if they are missing, and writes a byte to each.
    ///
    /// Throws a `Failure` that names the directory, the reason and the next step. Its code is
    /// `storageFull` where only space is lacking: the queue can make room for itself, so a daemon may go
    /// on.
    package func prepareDirectories() throws(Failure) {
        try makeDirectories()
        try tryDirectories()
    }

    /// The first half of it, which waits for no disk to write anything.
    func makeDirectories() throws(Failure) {
        // The group may look (`status` with the daemon dead), others may not.
        try explain("state_directory", stateDirectory) { path throws(SystemError) in
            try make(path, mode: 0o750)
        }
        try explain("runtime_directory", runtimeDirectory) { path throws(SystemError) in
            try make(path, mode: 0o755)
        }
    }

    /// The second half.
    func tryDirectories() throws(Failure) {
        try explain("state_directory", stateDirectory, tryWriting)
        try explain("runtime_directory", runtimeDirectory, tryWriting)
    }

    private func explain(
        _ key: String,
        _ path: String,
        _ body: (String) throws(SystemError) -> Void
    ) throws(Failure) {
        do {
            try body(path)
        } catch {
            throw Failure(
                "\(key) \(path) cannot be written: \(error.reason); \(advice(error.code, path))",
                code: error.code == ENOSPC || error.code == EDQUOT ? .storageFull : nil
            )
        }
    }

    /// Makes the directory and those above it; the ones above are open to all.
    private func make(_ path: String, mode: mode_t) throws(SystemError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw SystemError("mkdir", on: path, code: ENOTDIR)
            }
            return
        }
        let failure = SystemError.last("stat", on: path)
        guard failure.code == ENOENT else { throw failure }
        let above = path.split(separator: "/").dropLast()
        if !above.isEmpty { try make("/" + above.joined(separator: "/"), mode: 0o755) }
        if mkdir(path, mode) != 0 {
            let failure = SystemError.last("mkdir", on: path)
            if failure.code != EEXIST { throw failure }
        }
    }

    /// Writes a byte to a file and deletes it: only that finds a read-only and a full file system.
    private func tryWriting(in directory: String) throws(SystemError) {
        let name = ".\(getpid()).try"
        let path = "\(directory)/\(name)"
        let folder = try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
        // One that was left by a process of this number, or put there by the directory's owner.
        unlinkat(folder.number, name, 0)
        let flags = O_WRONLY | O_CREAT | O_EXCL
        let file = try Descriptor(opening: name, in: folder, flags, mode: 0o600, for: path)
        defer { unlinkat(folder.number, name, 0) }
        try file.write(whole: [0], path)
        try file.sync(path)
    }

    private func advice(_ code: Int32, _ path: String) -> String {
        switch code {
        case EACCES, EPERM: "give it to the user that Waypost runs as: chown waypost: \(path)"
        case EROFS: "mount its file system writable, or choose another directory"
        case ENOSPC, EDQUOT: "free some space there (df \(path))"
        case ENOTDIR: "something on the path is no directory; move it away or choose another path"
        default: "choose another directory"
        }
    }
}

extension Configuration {
    static func databasePath(in stateDirectory: String) -> String {
        "\(stateDirectory)/queue.sqlite"
    }

    var databasePath: String { Self.databasePath(in: stateDirectory) }

    package var socketPath: String { "\(runtimeDirectory)/control.sock" }
}
