// Why the queue does not take something, or cannot give it.
package import Records

/// The queue is closed, or has no database for now, while something wanted it.
package struct QueueClosed: Error, CustomStringConvertible {
    package var description: String {
        "the queue takes nothing: its disk refuses for now, or it is closed; try again later"
    }
}

/// The writer did not come to it in time: its disk is slow, or hangs.
struct WriterBusy: Error, CustomStringConvertible {
    var description: String { "the disk has not answered in time" }
}

/// Neither the disk nor memory has room for a record now.
package struct QueueFull: Error, CustomStringConvertible {
    package var description: String {
        "the queue is full: the disk refuses or is too slow; try again later"
    }
}

/// A record is not where it should be: nothing of its batch may be sent as it is.
package struct RecordMissing: Error, Sendable, Equatable, CustomStringConvertible {
    package var stream: Stream
    package var sequence: Int64
    package var why: String

    package init(stream: Stream, sequence: Int64, why: String) {
        self.stream = stream
        self.sequence = sequence
        self.why = why
    }

    package var description: String { "record \(sequence) of \(stream): \(why)" }
}

/// The live database is damaged, which says nothing of the older one that was to be read beside it.
package struct LiveDatabaseDamaged: Error {
    package var why: String
}
