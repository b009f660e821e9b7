// Giving back the memory of code that only ran at the start.
internal import CLinux

/// Unmaps the pages of code and constants; those in use come back from the page cache.
///
/// Starting touches nearly all of a program's libraries once (linking, initialisers, libcrypto's
/// self-tests): more than half of the resident size of a gateway that has settled would be code it never
/// runs again.
enum StartUpMemory {
    /// Asks the dynamic linker what is loaded, not /proc/self/maps: a library that is being loaded on
    /// another thread (sound plugins, name services) is there a read-only mapping at one moment and relocated
    /// data at the next, and losing that ended the program.
    static func release() { waypost_release_code() }
}
