// Keeps the effort accounts in step with what is committed.
package import Host
package import Records
import SQLite

extension Queue {
    /// Notes what a source does from `stamp` on (default: now); stored with a commit that happens
    /// anyway.
    ///
    /// After the records that the calling thread gave before, and never waits.
    package func record(_ effort: SourceEffort, of source: Stream, at stamp: Stamp? = nil) {
        let stamp = stamp ?? settings.clock.stamp()
        command { $0.record(effort, of: source, at: stamp) }
    }

    /// Notes in all effort accounts that the machine was suspended.
    package func recordSleep(from start: Stamp, to end: Stamp) {
        command { $0.recordSleep(from: start, to: end) }
    }

    /// Ends the effort accounts: none are kept in this process.
    package func forgetEffort() { command { $0.effort.clear() } }
}

extension WriterLoop {
    func record(_ effort: SourceEffort, of source: Stream, at stamp: Stamp) {
        let number = retryAt == nil ? writer?.next(of: source) : nil
        let time = EffortTime(boot: settings.bootID, stamp: stamp)
        self.effort.record(effort, of: source, at: time, number: number)
    }

    func recordSleep(from start: Stamp, to end: Stamp) {
        func time(_ stamp: Stamp) -> EffortTime { EffortTime(boot: settings.bootID, stamp: stamp) }
        effort.sleep(from: time(start), to: time(end)) { source in
            retryAt == nil ? writer?.next(of: source) : nil
        }
    }

    /// Continues the accounts of the process before, once; a disk error is retried.
    ///
    /// Must happen before anything is stored: what is newest tells when that process ended. If the
    /// database is damaged, the next one has no accounts, and salvage brings these.
    func continueEffort(_ writer: Writer) throws {
        guard !hasEffort else { return }
        if let before = try writer.effortBefore() {
            effort.follow(before)
        }
        hasEffort = true
    }

    /// Adds to the open transaction what it changes in the accounts: sealed intervals and the memo.
    ///
    /// Returns the accounts to keep once it is committed.
    func writeEffort(_ writer: Writer) throws -> EffortBook {
        try continueEffort(writer)
        var book = effort
        let notes = writer.memory.effort
        writer.memory.effort = EffortNotes()
        let now = EffortTime(boot: settings.bootID, stamp: settings.clock.stamp())
        book.apply(notes, boot: settings.bootID, number: writer.next)
        var sealed = notes.inherited.flatMap { book.inherit($0, wall: writer.wall) }
        // Older audio may still be in memory.
        if !isReplaying {
            sealed += book.seal(at: now, number: writer.next, wall: writer.wall)
        }
        try writer.insert(bootsOf: sealed.map(\.interval))
        for (source, interval) in sealed { try writer.insert(interval, of: source) }
        if let text = book.takeText() { queue.memos.set(EffortBook.memo, text) }
        return book
    }
}
