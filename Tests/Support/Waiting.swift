// Waits for conditions, never for a fixed time.
internal import Glibc
internal import Host

/// A condition that did not come true in time.
package struct NeverHappened: Error, CustomStringConvertible {
    package var what: String

    package init(what: String) {
        self.what = what
    }

    package var description: String { "not in time: \(what)" }
}

/// The factor by which all timeouts are extended on emulated processors.
package let patience = getenv("WAYPOST_TEST_PATIENCE").flatMap { Int(String(cString: $0)) } ?? 1

/// Waits for a condition, a minute at most; returns false if it did not come true.
package func eventually(
    limit: Duration = .seconds(60),
    _ condition: () throws -> Bool
) rethrows -> Bool {
    let clock = SystemClock()
    let deadline = clock.now() + limit * patience
    while try !condition() {
        guard clock.now() < deadline else { return false }
        usleep(2000)
    }
    return true
}

/// Waits for a condition, a minute at most; throws `NeverHappened` if it did not come true.
package func waitUntil(
    _ what: String,
    limit: Duration = .seconds(60),
    _ condition: () throws -> Bool
) throws {
    guard try eventually(limit: limit, condition) else { throw NeverHappened(what: what) }
}
