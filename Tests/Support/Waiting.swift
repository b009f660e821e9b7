// Waiting for what is to happen, never for a time.
internal import Glibc
internal import Host

/// What was waited for did not happen.
package struct NeverHappened: Error, CustomStringConvertible {
    package var what: String

    package init(what: String) {
        self.what = what
    }

    package var description: String { "not in time: \(what)" }
}

/// How many times as long everything may take: on emulated processors.
package let patience = getenv("WAYPOST_TEST_PATIENCE").flatMap { Int(String(cString: $0)) } ?? 1

/// Waits for a condition, a minute at most; false when it did not come.
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

/// Waits for a condition, a minute at most; throws `NeverHappened` when it did not come.
package func waitUntil(
    _ what: String,
    limit: Duration = .seconds(60),
    _ condition: () throws -> Bool
) throws {
    guard try eventually(limit: limit, condition) else { throw NeverHappened(what: what) }
}
