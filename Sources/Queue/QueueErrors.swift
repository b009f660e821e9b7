// Why the queue does not take something.

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
