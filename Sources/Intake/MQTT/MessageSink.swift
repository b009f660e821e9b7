// The seam between the MQTT intake and the queue.
package import Queue
package import Records

/// Stores records of messages together with the state of the session that they came in.
package protocol MessageSink: IntakeSink {
    /// Stores all records and the memos (texts by their names), or nothing; calls `done` once, on any thread.
    func put(
        _ records: [UserRecord],
        memos: [String: String],
        done: @escaping @Sendable ((any Error)?) -> Void
    )

    /// Stores a memo with the next commit that happens anyway.
    func remember(_ name: String, _ text: String)

    /// Returns the newest memo of a name.
    func remembered(_ name: String) -> String?
}

extension Queue: MessageSink {}
