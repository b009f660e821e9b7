// Invariants that are checked in place, and the count of those that did not hold.
import Glibc
import Synchronization

/// Notes an invariant that does not hold, where going on loses and mixes nothing.
///
/// A debug build stops there, so that each test and fuzzer sees it. In a release build the first one is
/// logged, and all are counted in `BrokenInvariants`, which `waypost status` and the simulator show.
/// Where going on would lose or mix data, use `mustHold`; what a damaged file can cause is an error.
package func invariant(
    _ holds: @autoclosure () -> Bool,
    _ what: StaticString,
    file: StaticString = #fileID,
    line: UInt = #line
) {
    guard !holds() else { return }
    BrokenInvariants.shared.note(what, "\(file):\(line)")
    assertionFailure("\(what)", file: file, line: line)
}

/// Ends the program where an invariant does not hold and going on would lose, double or mix data.
///
/// The open transaction is undone, and what is on disk is as it was. Unlike `precondition` it says in a
/// release build, too, what did not hold.
package func mustHold(
    _ holds: @autoclosure () -> Bool,
    _ what: StaticString,
    file: StaticString = #fileID,
    line: UInt = #line
) {
    guard holds() else {
        fatalError("an invariant does not hold: \(what); please report it", file: file, line: line)
    }
}

/// Counts the invariants that did not hold; thread-safe.
package final class BrokenInvariants: Sendable {
    /// Those of this process.
    package static let shared = BrokenInvariants { text in
        _ = writeAll(Array("<3>\(text)\n".utf8), to: STDERR_FILENO)
    }

    private let found = Mutex((count: 0, first: String?.none, last: String?.none))
    private let log: @Sendable (String) -> Void

    /// `log` gets the first one as a line, to be reported to the developers.
    package init(log: @escaping @Sendable (String) -> Void) { self.log = log }

    package var count: Int { found.withLock { $0.count } }
    /// The first one, and where it is checked; nil while all hold.
    package var first: String? { found.withLock { $0.first } }
    package var last: String? { found.withLock { $0.last } }

    func note(_ what: StaticString, _ place: String) {
        let isFirst = found.withLock { found in
            found.count += 1
            found.last = "\(what) (\(place))"
            guard found.first == nil else { return false }
            found.first = found.last
            return true
        }
        if isFirst { log("an invariant does not hold: \(what) (\(place)); please report it") }
    }
}
