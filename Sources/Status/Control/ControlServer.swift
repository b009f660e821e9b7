// The server of the control socket, which answers field commands without delay.
import CLinux
import Glibc
import Host
import Synchronization

/// Serves the control socket on one thread that blocks only in poll; see `ControlLoop`.
final class ControlServer: Sendable {
    struct Limits: Sendable {
        var clients = 256
        /// The limit per user, so that one user's programs leave room for others, mostly root's.
        var clientsOfOneUser = 224
        /// A client that sends no request for this long is disconnected.
        var idle = Duration.seconds(60)
        /// A client that reads no replies for this long is disconnected.
        var stall = Duration.seconds(10)
        /// The status is sent after this at the latest, as last published.
        var patience = Duration.milliseconds(500)
        /// The shortest interval between two pushes to watchers.
        var pushInterval = Duration.milliseconds(250)
    }

    /// Executes any request but `status`; must not block; calls back once, on any thread.
    typealias Perform =
        @Sendable (ControlRequest, _ done: @escaping @Sendable (ControlReply) -> Void) -> Void

    let limits: Limits
    let listener: UnixListener
    let status: StatusPublication
    let wakeup: Wakeup
    private let perform: Perform
    /// True if any client watches; otherwise a change need not wake the thread.
    private let isWatched = Atomic(false)
    private let hasChanged = Atomic(false)
    private let finished = StateBox([Finished]())

    /// The reply to a request that was executed on another thread.
    struct Finished: Sendable {
        /// The client's id.
        var client: Int
        var request: ControlRequest
        var reply: ControlReply
    }

    init(
        path: String,
        status: StatusPublication,
        limits: Limits = Limits(),
        perform: @escaping Perform
    ) throws {
        self.status = status
        self.limits = limits
        self.perform = perform
        wakeup = try Wakeup()
        listener = try UnixListener(path: path, name: "control socket", waiting: 256)
        let wakeup = wakeup
        status.onPublished { wakeup.signal() }
    }

    /// Blocks until `stop` is raised.
    func run(until stop: StopSignal) {
        let loop = ControlLoop(self)
        while !stop.isRaised { loop.turn(stop) }
        listener.remove()
    }

    /// Pushes the status to watchers; thread-safe.
    func changed() {
        guard isWatched.load(ordering: .acquiring) else { return }
        hasChanged.store(true, ordering: .releasing)
        wakeup.signal()
    }

    // MARK: For the loop

    func watched(_ isWatched: Bool) { self.isWatched.store(isWatched, ordering: .releasing) }

    func takeChanged() -> Bool { hasChanged.exchange(false, ordering: .acquiringAndReleasing) }

    func begin(_ request: ControlRequest, of client: Int) {
        let (finished, wakeup) = (finished, wakeup)
        perform(request) { reply in
            finished.update {
                $0.append(Finished(client: client, request: request, reply: reply))
            }
            wakeup.signal()
        }
    }

    func takeFinished() -> [Finished] {
        finished.update { finished in
            defer { finished = [] }
            return finished
        }
    }
}
