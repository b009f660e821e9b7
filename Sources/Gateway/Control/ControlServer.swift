// The control socket: field commands ask, and are always answered at once.
import CLinux
import Glibc
import Host
import Synchronization

/// Serves the socket on one thread, which waits for nothing but its clients: see `ControlLoop`.
final class ControlServer: Sendable {
    struct Limits: Sendable {
        var clients = 256
        /// Of one user, so that the programs of one leave room for another's: root's, mostly.
        var clientsOfOneUser = 224
        /// A client that asks nothing for so long is let go.
        var idle = Duration.seconds(60)
        /// A client that does not read its replies is waited for so long.
        var stall = Duration.seconds(10)
        /// The status is answered after this at the latest, with what was published last.
        var patience = Duration.milliseconds(500)
        /// At most so often is a change pushed to those who watch.
        var pushInterval = Duration.milliseconds(250)
    }

    /// Does anything but telling the status; must not block, and calls back once, on any thread.
    typealias Perform =
        @Sendable (ControlRequest, _ done: @escaping @Sendable (ControlReply) -> Void) -> Void

    let limits: Limits
    let listener: UnixListener
    let status: StatusPublication
    let wakeup: Wakeup
    private let perform: Perform
    /// There are clients that watch; without them a change need not wake the thread.
    private let isWatched = Atomic(false)
    private let hasChanged = Atomic(false)
    private let finished = StateBox([Finished]())

    /// What came of a request that was done aside.
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

    /// Something changed that watchers want to see.
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
