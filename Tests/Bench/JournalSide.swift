// The journal while someone reads all the time: how large it gets.
import Glibc
import Host
import Queue
import Records
import Synchronization

enum JournalSide {
    /// Fills a queue at full speed under a reader that is hardly ever without a transaction.
    static func run(_ task: SideTask) throws -> Figures {
        let cycle = try Workload.sightings()
        let queue = try task.queue()
        let watch = JournalWatch(task.database + "-wal")
        let reading = ReaderLoop()
        let reader = try OwnThread("reader") { reading.run(queue) }
        let watcher = try OwnThread("watch") { watch.run() }
        var figures = Figures.measure(rows: task.rows) { stopwatch in
            QueueSide.feed(queue, cycle, task, stopwatch)
            try? queue.perform { _ in }
        }
        reading.stop()
        reader.join()
        watch.stop()
        watcher.join()
        queue.close()
        try task.check()
        figures["journal_peak_bytes"] = Double(watch.peak)
        figures["reads"] = Double(reading.reads)
        return figures
    }
}

/// Reads page after page of sightings, each in a transaction of its own.
private final class ReaderLoop: Sendable {
    private let isStopped = Atomic(false)
    private let count = Atomic(0)

    var reads: Int { count.load(ordering: .relaxed) }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    func run(_ queue: Queue) {
        guard let reader = try? queue.reader() else { return }
        var first: Int64 = 1
        while !isStopped.load(ordering: .relaxed) {
            var found = 0
            try? reader.sightings(first...first + 255) { _ in found += 1 }
            // At the newest it starts again at the oldest.
            first = found == 256 ? first + 256 : 1
            count.wrappingAdd(1, ordering: .relaxed)
        }
    }
}

/// Samples a file's size a thousand times per second.
private final class JournalWatch: Sendable {
    private let path: String
    private let isStopped = Atomic(false)
    private let highest = Atomic(0)

    init(_ path: String) {
        self.path = path
    }

    var peak: Int { highest.load(ordering: .relaxed) }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    func run() {
        while !isStopped.load(ordering: .relaxed) {
            highest.max(BacklogSide.fileSize(path), ordering: .relaxed)
            usleep(1000)
        }
    }
}
