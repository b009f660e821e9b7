// A file system of a test's own, in memory.
import Foundation

/// Mounted on a folder of its own; gone with it.
package final class TemporaryMount: Sendable {
    private let folder = TemporaryFolder("mount")

    package var path: String { "\(folder.path)/mount" }

    /// Asked in a namespace of its own, so that asking leaves no mount behind.
    package static let isAllowed =
        getuid() == 0 && run("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")

    /// `options` of tmpfs(5): `size=4k`, `ro`.
    package init(_ options: String) throws {
        guard Self.run("mount", "-t", "tmpfs", "-o", options, "none", path) else {
            throw NeverHappened(what: "a mount with \(options)")
        }
    }

    deinit { _ = Self.run("umount", path) }

    private static func run(_ command: String...) -> Bool {
        (try? Process.run("/usr/bin/env", command))?.status == 0
    }
}
