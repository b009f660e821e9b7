// Handles SIGTERM and SIGINT, with a deadline for the stop.
import Glibc
import Host

/// Blocks the signals that stop the program, so that `wait` can receive them.
struct StopSignals {
    private var signals = sigset_t()

    init() {
        signal(SIGPIPE, SIG_IGN)
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Waits for one of the signals.
    func wait() {
        var signals = signals
        var number: Int32 = 0
        while sigwait(&signals, &number) != 0 {}
    }
}

/// Ends the process after `seconds` with status 0, even if the stop hangs.
func exitAfter(seconds: UInt32) throws {
    try OwnThread("deadline") {
        sleep(seconds)
        _exit(0)
    }.detach()
}
