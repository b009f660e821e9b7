// The server's newest offer of jobs, from the threads that receive answers to the one that does jobs.
import Host

/// The newest tag that an answer of the server carried, and the one that was handled last.
package final class OfferedJobs: Sendable {
    private struct Tags: Sendable {
        var offered: String?
        var handled: String?

        var open: String? { offered == handled ? nil : offered }
    }

    /// Signalled for an offer that was not handled yet, and by `wake`.
    let wakeup: Wakeup
    private let tags = StateBox(Tags())

    package init() throws { wakeup = try Wakeup() }

    /// Reports the tag of an answer; wakes nobody for one that was handled.
    package func offer(_ tag: String) {
        let isOpen = tags.update { tags in
            tags.offered = tag
            return tags.open != nil
        }
        if isOpen { wakeup.signal() }
    }

    /// Wakes the thread: other settings are in force.
    package func wake() { wakeup.signal() }

    /// The offered tag, unless it is the one that was handled last.
    var open: String? { tags.value.open }

    func isHandled(_ tag: String) { tags.update { $0.handled = tag } }
}
