// Background work at low priority, so that answering gateways always comes first.
import Glibc
import Host

/// Runs `body` on a new detached thread at nice level 10.
package func startBackgroundThread(_ name: String, _ body: @escaping @Sendable () -> Void) throws {
    try OwnThread(name) {
        // On Linux this affects the calling thread only (setpriority(2)).
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        body()
    }.detach()
}
