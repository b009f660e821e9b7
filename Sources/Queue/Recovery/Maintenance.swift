// What is done for the database in the background, beside the writer: the long check, and salvage.
import Host
import SQLite
import Synchronization

/// A thread that sleeps until there is something to look after; or steps, where it is turned by hand.
final class Maintenance: Sendable {
    private enum Task: Sendable {
        case inspect(generation: Int)
        case salvage
        case stop
    }

    /// A database of gigabytes on a slow card; after that it is taken for sound.
    private static let inspectionLimit = Duration.seconds(600)

    /// Until a salvage that the live database refused is tried again.
    private static let pause = Duration.seconds(60)

    private let core: QueueCore
    private let tasks = Mailbox<Task>(limit: 256)
    private let stopSignal: StopSignal
    private let salvaging: Mutex<Salvage?>

    init(core: QueueCore) throws {
        self.core = core
        stopSignal = try StopSignal()
        salvaging = Mutex(nil)
    }

    /// The check at the start ran out of time: does the whole of it.
    func inspect(generation: Int) { _ = tasks.post(.inspect(generation: generation)) }

    /// Looks for databases that were set aside, and makes their records ready for upload.
    func salvage() { _ = tasks.post(.salvage) }

    func stop() {
        stopSignal.raise()
        _ = tasks.post(.stop, urgent: true)
    }

    /// Blocks until `stop`.
    func run() {
        var waiting: [Task] = []
        while !stopSignal.isRaised {
            stopSignal.life.rests()
            tasks.takeAll(into: &waiting, timeout: hasSalvage ? Self.pause : nil)
            for task in waiting where !stopSignal.isRaised { start(task) }
            while !stopSignal.isRaised, salvageStep() {}
        }
        stopSignal.life.ends()
    }

    /// The last word of its thread.
    var word: Heartbeat.Word { stopSignal.life.word }

    /// One step by hand; false when there is nothing to do.
    func step() -> Bool {
        var waiting: [Task] = []
        tasks.takeAll(into: &waiting, timeout: .zero)
        for task in waiting { start(task) }
        return salvageStep() || !waiting.isEmpty
    }

    private func start(_ task: Task) {
        switch task {
        case .inspect(let generation):
            stopSignal.life.during("quick_check") { inspectNow(generation) }
        case .salvage: salvaging.withLock { $0 = Salvage(core, refusals: $0?.refusals ?? 0) }
        case .stop: break
        }
    }

    private var hasSalvage: Bool { salvaging.withLock { $0 != nil } }

    /// False when there is nothing more to salvage, or not now, as the live database refuses.
    private func salvageStep() -> Bool {
        guard var salvage = salvaging.withLock({ $0 }) else { return false }
        // A step reads a page or two of records, and waits for the writer.
        stopSignal.life.enters("salvage", for: .seconds(10))
        let hasMore = try? salvage.step()
        salvaging.withLock { $0 = hasMore == false ? nil : salvage }
        return hasMore ?? false
    }

    private func inspectNow(_ generation: Int) {
        let settings = core.settings
        guard let connection = try? settings.connect(nil, .readOnly) else { return }
        let result = connection.quickCheck(
            limit: Self.inspectionLimit,
            journal: settings.path + "-wal",
            journalLimit: 8 << 20,
            until: stopSignal
        )
        guard case .damaged(let message) = result else { return }
        _ = core.mailbox.post(.damaged(message, generation: generation), urgent: true)
    }
}
