// The folder that a path names.

/// Of `/etc/x` it is `/etc`, of `/x` it is `/`, of `x` it is `.`: never empty.
package func folder(ofPath path: String) -> String {
    path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
}
