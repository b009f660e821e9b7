// What is done for the database in the background, beside the writer: the long check, and salvage.
internal import Board
internal import Host
internal import Synchronization

/// A thread that sleeps until there is something to look after.
final class Caretaker: Sendable {
    private enum Task: Sendable {
        case inspect(epoch: Int)
        case salvage(String)
        case stop
    }

    /// A database of gigabytes on a slow card; after that it is taken for sound.
    private static let inspectionLimit = Duration.seconds(600)

    private let core: QueueCore
    private let tasks = Mailbox<Task>(limit: 256)
    private let stopSignal: StopSignal

    init(core: QueueCore) throws {
        self.core = core
        stopSignal = try StopSignal()
    }

    /// The check at the start ran out of time: does the whole of it.
    func inspect(epoch: Int) { _ = tasks.post(.inspect(epoch: epoch)) }

    /// Takes over what can be read of a database that was set aside, unless that was done before.
    func salvage(_ path: String) { _ = tasks.post(.salvage(path)) }

    func stop() {
        stopSignal.raise()
        _ = tasks.post(.stop, urgent: true)
    }

    /// Blocks until `stop`.
    func run() {
        var waiting: [Task] = []
        while !stopSignal.isRaised {
            tasks.takeAll(into: &waiting, timeout: nil)
            for task in waiting where !stopSignal.isRaised {
                switch task {
                case .inspect(let epoch): inspectNow(epoch)
                case .salvage(let path): Salvage(path: path, core: core, stop: stopSignal).run()
                case .stop: return
                }
            }
        }
    }

    private func inspectNow(_ epoch: Int) {
        let path = core.settings.path
        guard let connection = try? Connection(path: path, access: .readOnly) else { return }
        let result = connection.quickCheck(
            limit: Self.inspectionLimit,
            journal: path + "-wal",
            journalLimit: 8 << 20,
            until: stopSignal
        )
        guard case .damaged(let words) = result else { return }
        _ = core.mailbox.post(.damaged(words, epoch: epoch), urgent: true)
    }
}
