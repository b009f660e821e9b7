// Errors for records that the queue cannot store or read.
package import Records

/// The queue is closed, or does not have a database for now.
package struct QueueClosedError: Error, CustomStringConvertible {
    package var description: String {
        "the queue does not accept records: it is closed or its disk fails; try again later"
    }
}

/// The writer did not respond in time: its disk is slow or hangs.
struct WriterBusyError: Error, CustomStringConvertible {
    var description: String { "the disk did not respond in time" }
}

/// Neither the disk nor memory has room for a record now.
package struct QueueFullError: Error, CustomStringConvertible {
    package var description: String {
        "the queue is full: the disk fails or is too slow; try again later"
    }
}

/// A record is missing or damaged: its batch must not be sent as it is.
package struct RecordMissingError: Error, Sendable, Equatable, CustomStringConvertible {
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

/// The live database is damaged; the older one being read next to it may be intact.
package struct DatabaseDamagedError: Error {
    package var why: String
}
