// Threads for which no gateway waits.
import Glibc
import Host

/// Runs `body` on a thread of its own that comes after the answers to gateways.
func startBackgroundThread(_ name: String, _ body: @escaping @Sendable () -> Void) throws {
    try OwnThread(name) {
        // Of this thread alone (setpriority(2)).
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        body()
    }.detach()
}
