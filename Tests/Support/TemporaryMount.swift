// A temporary in-memory file system of a test.
import Foundation

/// A tmpfs on a temporary folder, unmounted with this object.
package final class TemporaryMount: Sendable {
    private let folder = TemporaryFolder("mount")

    package var path: String { "\(folder.path)/mount" }

    /// Tested in a separate namespace, so that the test leaves no mount behind.
    package static let isAllowed =
        getuid() == 0 && run("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")

    /// Mounts with `options` of tmpfs(5), such as `size=4k` or `ro`.
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
