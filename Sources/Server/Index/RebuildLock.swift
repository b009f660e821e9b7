// Prevents two index rebuilds at a time, and tells the receiver that one is running.
import CLinux
import Glibc
import Host

/// An flock(2) held during `index rebuild`.
///
/// If the index is incomplete and the lock is free, the rebuild was killed.
enum RebuildLock {
    /// Runs `body` with the lock, so that only one process rebuilds a directory's index.
    static func hold<Value>(in directory: String, _ body: () throws -> Value) throws -> Value {
        let path = path(in: directory)
        let lock = try Descriptor(opening: path, O_RDONLY | O_CREAT, mode: 0o640)
        guard flock(lock.number, LOCK_EX) == 0 else { throw SystemError.last("flock", on: path) }
        return try withExtendedLifetime(lock) { try body() }
    }

    static func isHeld(in directory: String) -> Bool {
        guard let lock = try? Descriptor(opening: path(in: directory), O_RDONLY) else {
            return false
        }
        return flock(lock.number, LOCK_EX | LOCK_NB) != 0
    }

    private static func path(in directory: String) -> String {
        "\(directory)/.receiver-index.lock"
    }
}
