// Background maintenance of the database: the long integrity check, and salvage.
import Host
import SQLite
import Synchronization

/// Runs maintenance tasks on a thread of its own, or step by step when driven by hand.
final class Maintenance: Sendable {
    private enum Task: Sendable {
        case inspect(generation: Int)
        case salvage
        case stop
    }

    /// Enough for gigabytes on a slow card; after that the database counts as intact.
    private static let inspectionLimit = Duration.seconds(600)

    /// The retry interval of a salvage that failed on the live database.
    private static let pause = Duration.seconds(60)

    private let tasks = Mailbox<Task>(limit: 256)
    private let stopSignal: StopSignal
    private let salvaging: Mutex<Salvage?>

    init() throws {
        stopSignal = try StopSignal()
        salvaging = Mutex(nil)
    }

    /// Runs the whole integrity check, after the one at startup ran out of time.
    func inspect(generation: Int) { _ = tasks.post(.inspect(generation: generation)) }

    /// Looks for quarantined databases and prepares their records for upload.
    func salvage() { _ = tasks.post(.salvage) }

    func stop() {
        stopSignal.raise()
        _ = tasks.post(.stop, urgent: true)
    }

    /// Runs tasks; blocks until `stop`.
    func run(_ queue: Queue) {
        var waiting: [Task] = []
        while !stopSignal.isRaised {
            stopSignal.life.rests()
            tasks.takeAll(into: &waiting, timeout: hasSalvage ? Self.pause : nil)
            for task in waiting where !stopSignal.isRaised { start(task, queue) }
            while !stopSignal.isRaised, salvageStep() {}
        }
        stopSignal.life.ends()
    }

    /// The latest heartbeat of its thread.
    var word: Heartbeat.Word { stopSignal.life.word }

    /// Runs one step by hand; returns false when there is nothing to do.
    func step(_ queue: Queue) -> Bool {
        var waiting: [Task] = []
        tasks.takeAll(into: &waiting, timeout: .zero)
        for task in waiting { start(task, queue) }
        return salvageStep() || !waiting.isEmpty
    }

    private func start(_ task: Task, _ queue: Queue) {
        switch task {
        case .inspect(let generation):
            stopSignal.life.during("quick_check") { inspectNow(generation, queue) }
        case .salvage: salvaging.withLock { $0 = Salvage(queue, refusals: $0?.refusals ?? 0) }
        case .stop: break
        }
    }

    private var hasSalvage: Bool { salvaging.withLock { $0 != nil } }

    /// Returns false when nothing is left to salvage, or when the live database fails now.
    private func salvageStep() -> Bool {
        guard var salvage = salvaging.withLock({ $0 }) else { return false }
        // A step reads one or two pages of records and waits for the writer.
        stopSignal.life.enters("salvage", for: .seconds(10))
        let hasMore = try? salvage.step()
        salvaging.withLock { $0 = hasMore == false ? nil : salvage }
        return hasMore ?? false
    }

    private func inspectNow(_ generation: Int, _ queue: Queue) {
        let settings = queue.settings
        guard let connection = try? settings.connect(nil, .readOnly) else { return }
        let result = connection.quickCheck(
            limit: Self.inspectionLimit,
            journal: settings.path + "-wal",
            journalLimit: 8 << 20,
            until: stopSignal
        )
        guard case .damaged(let message) = result else { return }
        queue.reportDamage(message, generation: generation)
    }
}
