// SIGTERM and SIGINT, and an end that comes in any case.
import Foundation
import Glibc

/// Takes the signals that ask for an end; they no longer end the process by themselves.
struct StopSignals {
    private var signals = sigset_t()

    init() {
        signal(SIGPIPE, SIG_IGN)
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Until one of them comes.
    func wait() {
        var signals = signals
        var number: Int32 = 0
        while sigwait(&signals, &number) != 0 {}
    }
}

/// Ends the process by then, as at a stop in order.
func exitAfter(seconds: TimeInterval) {
    Thread.detachNewThread {
        Thread.sleep(forTimeInterval: seconds)
        _exit(0)
    }
}
