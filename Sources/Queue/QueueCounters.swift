// The counters of the last commit, which other threads read without the writer.
import Records
import Synchronization

/// A copy of the writer's memory as of its last commit, and a reading connection for the rest.
final class QueueCounters: Sendable {
    struct Content: Sendable {
        var memory = WriterMemory()
        /// The current boot; 0 until a database is open.
        var boot: Int64 = 0
        var streams: StreamList
        var isOpen: Bool { boot > 0 }

        /// Numbers of user streams, kept in a new database because records in memory use them.
        var userNumbers: [String: Int] {
            let own = streams.kinds.filter { $0.isOfUser }
            return Dictionary(own.map { ($0.stream.name, $0.stream.number) }) { first, _ in first }
        }
    }

    private struct ReaderBox: Sendable {
        // Used by one thread at a time: the one that holds the lock.
        nonisolated(unsafe) var reader: Reader?
    }

    private let settings: QueueSettings
    private let current: Mutex<Content>
    private let reader = Mutex(ReaderBox())

    init(_ settings: QueueSettings) {
        self.settings = settings
        current = Mutex(Content(streams: StreamList(with: settings.moreStreams)))
    }

    var content: Content { current.withLock { $0 } }
    var memory: WriterMemory { content.memory }

    /// Called after each commit.
    func committed(_ writer: Writer) {
        let new = Content(memory: writer.committed, boot: writer.boot, streams: writer.streams)
        current.withLock { $0 = new }
    }

    /// Closes the reading connection.
    func closed() { reader.withLock { $0.reader = nil } }

    /// Asks the database; throws the reader's errors.
    func ask<Value>(_ body: (Reader) throws -> Value) throws -> Value {
        try reader.withLock { box in
            let reader = try box.reader ?? Reader(settings)
            box.reader = reader
            do {
                return try body(reader)
            } catch {
                // The file may have been replaced: reopen it next time.
                box.reader = nil
                throw error
            }
        }
    }
}
