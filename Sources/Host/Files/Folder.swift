// Folders: the parent of a path, the names inside and their kinds, and fsync.
import CLinux
import Glibc

/// Fsyncs a folder: after it returns, a power cut no longer changes which files the folder holds.
package func syncFolder(_ path: String) throws(SystemError) {
    try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).sync(path)
}

/// Writes the whole file system that a file or folder is on to its disk (syncfs(2)).
package func syncFileSystem(of path: String) throws(SystemError) {
    let file = try Descriptor(opening: path, O_RDONLY)
    guard waypost_sync_file_system(file.number) == 0 else { throw .last("syncfs", on: path) }
}

/// Returns the kind of a file such as S_IFREG, not following a link; 0 if there is none.
package func fileKind(_ path: String) -> UInt32 {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
}

/// Returns the parent folder, never empty: `/etc` of `/etc/x`, `/` of `/x`, `.` of `x`.
package func folder(ofPath path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
}

/// Returns an absolute path to the same file, for a process in another working directory.
package func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
    defer { free(here) }
    return String(cString: here) + "/" + path
}

/// Returns the names in a folder, sorted, without dot files; empty if it cannot be read.
package func names(inFolder path: String) -> [String] { (try? list(path)) ?? [] }

/// Returns the names in a folder, sorted, without dot files; throws if only a part can be read.
package func list(_ path: String) throws(SystemError) -> [String] {
    guard let open = opendir(path) else { throw SystemError.last("open", on: path) }
    defer { closedir(open) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(open) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if !name.hasPrefix(".") { names.append(name) }
        errno = 0
    }
    // A partial list would make existing files look deleted.
    guard errno == 0 else { throw SystemError.last("readdir", on: path) }
    return names.sorted()
}
