// A flag that a poll(2) can wait for.
import CLinux
import Glibc
import Synchronization

/// An eventfd: `signal` makes it readable, `clear` takes that back.
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
        // A full counter (EAGAIN) is readable already, which is all that is wanted.
        _ = write(owner.number, &one, 8)
    }

    package func clear() {
        var count: UInt64 = 0
        _ = read(owner.number, &count, 8)
    }
}

/// Asks a blocking loop to end, and hears from it where it is; stays raised.
package final class StopSignal: Sendable {
    /// The last word of the loop's thread.
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

    /// Sleeps for `duration`, or less if raised; true when it was raised.
    package func sleep(for duration: Duration) -> Bool {
        var entries = [PollEntry(descriptor)]
        _ = self.wait(for: &entries, timeout: duration)
        return isRaised
    }

    /// Waits as `Host.wait(for:timeout:)` does, and says so; the entries need not have this signal.
    package func wait(for entries: inout [PollEntry], timeout: Duration? = nil) -> Int {
        life.during("poll", for: timeout) { Host.wait(for: &entries, timeout: timeout) }
    }
}
