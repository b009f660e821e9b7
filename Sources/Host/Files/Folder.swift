// Folders: which one a path stands in, what it holds, and when that is sure.
import CLinux
import Glibc

/// From here on a power cut changes no more which files a folder holds.
package func syncFolder(_ path: String) throws(SystemError) {
    try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).sync(path)
}

/// Of `/etc/x` it is `/etc`, of `/x` it is `/`, of `x` it is `.`: never empty.
package func folder(ofPath path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
}

/// The same file for whoever is in another folder.
package func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
    defer { free(here) }
    return String(cString: here) + "/" + path
}

/// The names in a folder, sorted, without those that begin with a dot; none where it cannot be read.
package func names(inFolder path: String) -> [String] { (try? list(path)) ?? [] }

/// The names in a folder, sorted, without those that begin with a dot; one that can be read in part is an error.
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
    // A file that is missing in half a list may be there.
    guard errno == 0 else { throw SystemError.last("readdir", on: path) }
    return names.sorted()
}
