// Makes and tests the directories that the gateway writes to.
import CLinux
import Glibc
package import Host

extension Configuration {
    /// Makes the state and the runtime directory if they are missing, and writes a byte to each.
    ///
    /// Throws a `Failure` that names the directory, the reason and the remedy. Its code is
    /// `storageFull` if only space is missing: a daemon may continue, since the queue can make
    /// room.
    package func prepareDirectories() throws(Failure) {
        try makeDirectories()
        try tryDirectories()
    }

    /// Makes the directories, without waiting for a disk to write.
    package func makeDirectories() throws(Failure) {
        // The group may read it (`status` without a daemon), others may not.
        try explain("state_directory", stateDirectory) { path throws(SystemError) in
            try make(path, mode: 0o750)
        }
        try explain("runtime_directory", runtimeDirectory) { path throws(SystemError) in
            try make(path, mode: 0o755)
        }
    }

    /// Writes a byte to each directory.
    package func tryDirectories() throws(Failure) {
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

    /// Makes the directory and its parents; the parents are open to all.
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

    /// Writes a byte to a file and deletes it, which detects a read-only or full file system.
    private func tryWriting(in directory: String) throws(SystemError) {
        let name = ".\(getpid()).try"
        let path = "\(directory)/\(name)"
        let folder = try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
        // Removes one left by a process with this pid, or put there by the directory's owner.
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
        case ENOTDIR:
            "something on the path is not a directory; move it away or choose another path"
        default: "choose another directory"
        }
    }
}

extension Configuration {
    package static func databasePath(in stateDirectory: String) -> String {
        "\(stateDirectory)/queue.sqlite"
    }

    package var databasePath: String { Self.databasePath(in: stateDirectory) }

    package var socketPath: String { "\(runtimeDirectory)/control.sock" }
}
