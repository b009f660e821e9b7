// The user and group that a file belongs to.
package import Glibc

/// Returns a user's name, or the number of one that is not known.
package func userName(_ user: uid_t) -> String {
    getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "\(user)"
}

/// The owner of a file, as fchown(2) takes it.
package struct FileOwner: Sendable, Equatable {
    package var user: uid_t
    package var group: gid_t

    package init(user: uid_t, group: gid_t) {
        (self.user, self.group) = (user, group)
    }
}
