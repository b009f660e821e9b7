// Publishes the status from memory, so that a slow disk delays no reader.
package import Host
import StatusBoard
import Synchronization

/// Gathers the stored figures on its own thread on request, and composes reports with the newest.
///
/// Only that thread reads the database, so a hung disk or library delays nobody else.
/// Thread-safe.
package final class StatusPublication: Sendable {
    private struct State: Sendable {
        var figures: StoredFigures?
        /// Numbers of the last publication requested, begun and published; they count from 1.
        var asked = 0
        var begun = 0
        var published = 0
        var begunAt: BootInstant?
    }

    /// Publishes the number of each publication.
    let publications = Publisher<Int>()

    private let state = StateBox(State())
    private let clock: any HostClock
    private let gather: @Sendable () -> StoredFigures?
    private let compose: @Sendable (StoredFigures?, _ waiting: Duration?) -> StatusReport
    private let wanted: Wakeup
    private let signal: StopSignal

    /// Creates a publication without starting its thread.
    ///
    /// `compose` makes a report from memory and the figures; `waiting`: the time since newer
    /// figures were requested.
    package init(
        clock: any HostClock = SystemClock(),
        gather: @escaping @Sendable () -> StoredFigures?,
        compose: @escaping @Sendable (StoredFigures?, _ waiting: Duration?) -> StatusReport
    ) throws {
        self.clock = clock
        self.gather = gather
        self.compose = compose
        wanted = try Wakeup()
        signal = try StopSignal()
    }

    /// Starts the thread.
    package func start() throws {
        // Not joined: it may hang on a disk, and a stop must not wait for it.
        try OwnThread("status") { self.run() }.detach()
    }

    /// The last heartbeat of its thread.
    package var word: Heartbeat.Word { signal.life.word }

    /// Stops the thread; no publication begins after this.
    package func stop() { signal.raise() }

    private func run() {
        while !signal.isRaised {
            var entries = [PollEntry(signal.descriptor), PollEntry(wanted.descriptor)]
            _ = signal.wait(for: &entries)
            wanted.clear()
            while !signal.isRaised, begin() {
                finish(signal.life.during("the figures of the queue", for: .seconds(10), gather))
            }
        }
        signal.life.ends()
    }

    private func begin() -> Bool {
        let now = clock.now()
        return state.update { state in
            guard state.asked > state.begun else { return false }
            state.begun += 1
            state.begunAt = now
            return true
        }
    }

    private func finish(_ figures: StoredFigures?) {
        let number = state.update { state in
            state.figures = figures
            state.published = state.begun
            state.begunAt = nil
            return state.published
        }
        publications.loaded(number)
    }

    /// Requests a publication that begins after now; returns its number.
    package func ask() -> Int {
        let number = state.update { state in
            state.asked = state.begun + 1
            return state.asked
        }
        wanted.signal()
        return number
    }

    /// The number of the newest publication.
    package var number: Int { state.value.published }

    /// Returns the current status with the newest published figures; never blocks.
    package func report() -> StatusReport {
        let (figures, begunAt) = state.update { ($0.figures, $0.begunAt) }
        return compose(figures, begunAt.map { clock.now() - $0 })
    }

    /// Returns the current status, with fresh figures if they arrive within `limit`.
    package func fresh(within limit: Duration) -> StatusReport {
        guard let published = try? Wakeup() else { return report() }
        let subscription = publications.subscribe { _ in published.signal() }
        defer { withExtendedLifetime(subscription) {} }
        let number = ask()
        let deadline = clock.now() + limit
        while self.number < number, case let left = deadline - clock.now(), left > .zero {
            var entries = [PollEntry(published.descriptor)]
            _ = wait(for: &entries, timeout: left)
            published.clear()
        }
        return report()
    }
}
