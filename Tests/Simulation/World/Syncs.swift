// Uploads of a device, driven and checked by the simulation.
import Configuration
internal import Host
internal import Queue
internal import Records
internal import StatusBoard
internal import Upload

/// The uploader of one program.
final class Syncer {
    private let sync: Sync
    private let destination: SimulatedDestination
    private let queue: Queue
    private let budget: Int64?
    private unowned let device: any AccountHolder
    private let board = Publisher<UploadReport>()

    /// The failure messages that a person would see.
    var failures: [String] {
        (board.state.value?.streams ?? [:]).compactMap { stream, upload in
            upload.lastError.map { "\(stream): \($0.failure)" }
        }
    }

    init(
        _ device: any AccountHolder,
        _ queue: Queue,
        _ server: Server,
        _ plan: Plan,
        clock: any HostClock,
        random: @escaping () -> UInt64,
        truth: @escaping () -> Truth
    ) throws {
        destination = SimulatedDestination(
            device,
            queue,
            server,
            isMetered: plan.budget != nil,
            truth: truth
        )
        self.queue = queue
        budget = plan.budget
        self.device = device
        sync = Sync(
            settings: UploadSettings {
                $0.maxBatchBytes = plan.batchBytes
                $0.maxAttempts = plan.maxAttempts
                $0.clockPatience = .seconds(10)
                if plan.newestBetween { $0.liveInterval = .zero }
                $0.dailyBudget = plan.budget
            },
            queue: queue,
            destination: destination,
            clock: clock,
            random: { Double(random() >> 11) / Double(1 << 53) },
            board: board,
            stop: try StopSignal()
        )
    }

    var retryDelay: Duration? { sync.retryDelay }

    /// Runs one sync and checks its invariants.
    func perform(_ reason: SyncReason, _ server: Server) throws {
        // Records accepted earlier are not part of this sync.
        _ = try? queue.flushed()
        let (requests, events) = (server.requests, queue.newest(.events))
        let others = queue.statistics(dated: false).count { $0.stream != .events && $0.pending > 0 }
        let before = destination.metered
        let result = sync.perform(reason)
        let cost = destination.metered - before
        // A record longer than the budget is sent beside it.
        if let budget, cost > budget + destination.largest {
            throw Violation("budget", "a sync of \(cost) bytes, \(budget) a day")
        }
        if let found = destination.found ?? server.found { throw found }
        if server.mode == .refusesAll, server.requests - requests > 40 {
            throw Violation(
                "bounded",
                "\(server.requests - requests) requests to a server that refuses everything"
            )
        }
        let born = Int(queue.newest(.events) - events)
        let allowed = server.mode == .refusesAll ? others : 2 * others + 1
        if born > allowed, (try? queue.losses())?.isEmpty ?? false, queue.setAside.isEmpty {
            throw Violation("bounded", "a sync of \(others) streams made \(born) events")
        }
        // Changed numbers may contradict each other; the final check covers arrival.
        guard result.left == 0, !device.account.isGarbled else { return }
        // The program makes these itself, also during a sync.
        for figures in queue.statistics(dated: false)
        where figures.pending > 0 && ![.events, .effort].contains(figures.stream) {
            throw Violation("said done", "\(figures.pending) of \(figures.stream) are pending")
        }
    }
}
