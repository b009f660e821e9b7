// The user and group that a file belongs to.
package import Glibc

/// The owner of a file, as fchown(2) takes it.
package struct FileOwner: Sendable, Equatable {
    package var user: uid_t
    package var group: gid_t

    package init(user: uid_t, group: gid_t) {
        (self.user, self.group) = (user, group)
    }
}
