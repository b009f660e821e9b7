// The listen socket of a running gateway.
package import Host
package import Records
package import StatusBoard

/// Starts and stops the listen socket; it is there while audio is enabled.
///
/// `declare` and `stop` must not be called concurrently.
package final class ListenService: Sendable {
    static let fileName = "listen"

    private let path: String
    private let tap: AudioTap
    private let facts: ListenFacts
    private let board: Publisher<ListenReport>
    private let clock: any HostClock
    private let running = StateBox<(server: ListenServer, thread: StoppableThread)?>(nil)

    package init(
        directory: String,
        tap: AudioTap,
        facts: ListenFacts,
        board: Publisher<ListenReport>,
        clock: any HostClock
    ) {
        path = "\(directory)/\(Self.fileName)"
        (self.tap, self.facts, self.board, self.clock) = (tap, facts, board, clock)
    }

    /// The last heartbeat of its thread; nil while audio is not enabled.
    package var word: Heartbeat.Word? { running.value?.thread.life.word }

    /// Wakes its thread once.
    package func ask() {
        guard let running = running.value else { return }
        running.thread.life.asked()
        running.server.health.signal()
    }

    /// Opens or closes the socket; an error is on the status board.
    package func declare(isEnabled: Bool) {
        guard isEnabled else {
            stop(by: SystemClock().now() + StoppableThread.stopLimit)
            return board.publish(.unknown)
        }
        guard running.value == nil else { return }
        do {
            let server = try ListenServer(
                path: path,
                tap: tap,
                facts: facts,
                board: board,
                clock: clock
            )
            let thread = try StoppableThread("listen") { server.run(until: $0) }
            running.update { $0 = (server, thread) }
        } catch {
            board.failed((error as? Failure) ?? Failure("listen: \(error)"))
        }
    }

    /// Stops the thread; false if it hangs and was abandoned.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        let thread = running.value?.thread
        defer { running.update { $0 = nil } }
        return thread?.stop(by: deadline) ?? true
    }
}
