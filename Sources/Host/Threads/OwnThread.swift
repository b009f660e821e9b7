// Threads for loops that block in C.
import CLinux
import Glibc

/// A named thread that runs one body; `join` waits for its end.
///
/// Blocking C calls must stay off Swift's cooperative pool, so each loop of the gateway has one.
package struct OwnThread: ~Copyable, Sendable {
    private let thread: pthread_t

    /// Starts `body` at once.
    ///
    /// `name` is cut to 15 bytes (pthread_setname_np(3)). `stack`: bytes; 512 KiB is ample for
    /// libcurl with TLS, and the default of 8 MiB is address space only.
    package init(
        _ name: String,
        stack: Int = 512 << 10,
        _ body: @escaping @Sendable () -> Void
    ) throws {
        let start = Unmanaged.passRetained(ThreadStart(name: name, body: body))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stack)
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, runThread, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw SystemError("pthread_create", on: name, code: code)
        }
        self.thread = thread
    }

    /// Waits until the body has returned.
    package consuming func join() {
        pthread_join(thread, nil)
    }

    /// Detaches the thread: its resources are released when the body returns.
    package consuming func detach() {
        pthread_detach(thread)
    }

    /// Waits at most `limit` for the body to return.
    ///
    /// Returns false if it did not: the thread is then detached, and what it holds leaks until the
    /// process ends.
    package consuming func join(within limit: Duration) -> Bool {
        waypost_join_or_detach(thread, max(0, limit.nanoseconds)) == 0
    }
}

/// The processor time of one thread: a thread that hangs in a call uses none.
package struct ThreadTime: Sendable {
    private let clock: clockid_t

    /// Measures the calling thread, which must outlive this value.
    package init() {
        var clock = clockid_t()
        pthread_getcpuclockid(pthread_self(), &clock)
        self.clock = clock
    }

    package var used: Duration { .nanoseconds(SystemClock.read(clock)) }
}

private final class ThreadStart: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

/// A plain function: a closure made in an actor's or main's context aborts when C calls it.
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let start = Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue()
    _ = String(start.name.prefix(15)).withCString { waypost_name_thread($0) }
    start.body()
    return nil
}
