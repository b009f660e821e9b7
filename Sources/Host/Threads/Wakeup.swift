// Flags that poll(2) can wait for.
import CLinux
import Glibc
import Synchronization

/// An eventfd: `signal` makes it readable, `clear` resets it.
///
/// Any thread may call either.
package final class Wakeup: Sendable {
    private let owner: Descriptor

    package init() throws {
        let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard number >= 0 else { throw SystemError.last("eventfd") }
        owner = Descriptor(owning: number)
    }

    /// The descriptor to poll for reading.
    package var descriptor: Int32 { owner.number }

    package func signal() {
        var one: UInt64 = 1
        // A full counter (EAGAIN) is already readable, which is enough.
        _ = write(owner.number, &one, 8)
    }

    package func clear() {
        var count: UInt64 = 0
        _ = read(owner.number, &count, 8)
    }
}

/// Asks a blocking loop to stop and carries its thread's heartbeat; stays raised.
package final class StopSignal: Sendable {
    /// The heartbeat of the loop's thread.
    package let life = Heartbeat()
    private let wakeup: Wakeup
    private let raised = Atomic(false)

    package init() throws {
        wakeup = try Wakeup()
    }

    package var descriptor: Int32 { wakeup.descriptor }

    package var isRaised: Bool { raised.load(ordering: .acquiring) }

    package func raise() {
        raised.store(true, ordering: .releasing)
        wakeup.signal()
    }

    /// Sleeps for `duration`, or until raised; returns true if it was raised.
    package func sleep(for duration: Duration) -> Bool {
        var entries = [PollEntry(descriptor)]
        _ = self.wait(for: &entries, timeout: duration)
        return isRaised
    }

    /// Waits as `Host.wait(for:timeout:)` does, with a heartbeat; `entries` may leave out this
    /// signal.
    package func wait(for entries: inout [PollEntry], timeout: Duration? = nil) -> Int {
        life.during("poll", for: timeout) { Host.wait(for: &entries, timeout: timeout) }
    }
}
