// Saves the counts of unwritten records, and the losses, for the next start while the disk accepts
// no writes.
import Glibc
import Host
import Queue
import Records

/// Keeps counts of records in flight, and losses, in files of the runtime directory.
struct InFlightFile: Sendable {
    private let queue: Queue
    private let clock: any HostClock
    private let directory: String
    private let bootID: String
    /// When the disk last accepted all pending records.
    private let lastWritten: StateBox<Stamp>

    init(_ queue: Queue, clock: any HostClock, directory: String, bootID: String) {
        self.queue = queue
        self.clock = clock
        self.directory = directory
        self.bootID = bootID
        lastWritten = StateBox(clock.stamp())
    }

    /// Records the losses that the previous run could not write.
    func enter() {
        enterOfOtherBoots()
        let found = PendingLossFile.found(in: directory, bootID: bootID, queue.streams)
        let inFlight = PendingLossFile.inFlight(in: directory, bootID: bootID, queue.streams)
        guard !found.isEmpty || !inFlight.isEmpty else { return }
        for loss in found.compactMap(lost) { queue.record(loss) }
        for loss in inFlight.compactMap(lost) { queue.record(loss) }
        // While the disk still rejects writes they stay in the file, and in memory.
        let isEntered = (try? queue.flushed()) != nil
        if isEntered { keep([]) } else { keepWaiting() }
        PendingLossFile.removeInFlight(in: directory)
    }

    /// Records the losses of earlier boots; if the disk rejects them, the next start retries.
    private func enterOfOtherBoots() {
        let left = PendingLossFile.ofOtherBoots(in: directory, queue.streams)
        let notes = left.map {
            let losses = $0.losses.compactMap(lost) + $0.inFlight.compactMap(lost)
            return LossNote(name: $0.name, bootID: $0.bootID, losses: losses)
        }
        // In this call: records accepted later must not count as those that were in flight.
        guard !notes.isEmpty, (try? queue.enter(notes)) != nil else { return }
        for note in left { unlink(note.path) }
    }

    /// Returns the loss, or nil if it is in the database already.
    private func lost(_ left: PendingLossFile.Waiting) -> Loss? {
        left.turn.map { queue.hasEntered($0) } == true ? nil : left.loss
    }

    private func lost(_ left: PendingLossFile.InFlight) -> Loss? {
        queue.lost(of: left.records, from: left.from, to: left.to)
    }

    /// Saves the files at a health tick while the writer hangs or the disk rejects writes.
    func look() {
        let now = clock.stamp()
        let hangs = queue.writerWord.overdue(at: now.boot) >= .seconds(2)
        if hangs || queue.isRefused { return keep(at: now) }
        lastWritten.update { $0 = now }
        if queue.newLosses.isEmpty { PendingLossFile.remove(in: directory) }
        PendingLossFile.removeInFlight(in: directory)
    }

    /// Saves the files at a stop whose time is over; the disk may be slow rather than hung.
    func keepAll() { keep(at: clock.stamp()) }

    private func keep(at now: Stamp) {
        keepWaiting()
        PendingLossFile.keep(
            inFlight: queue.inFlight,
            from: lastWritten.value,
            to: now,
            in: directory,
            bootID: bootID
        )
    }

    private func keepWaiting() {
        let waiting = queue.lossesUnderWay.map {
            PendingLossFile.Waiting(loss: $0.loss, turn: $0.turn)
        }
        PendingLossFile.keep(waiting, in: directory, bootID: bootID)
    }

    /// Saves the losses of a stop; they include the records that were in flight.
    func keep(_ losses: [Loss]) {
        let waiting = losses.map { PendingLossFile.Waiting(loss: $0) }
        PendingLossFile.keep(waiting, in: directory, bootID: bootID)
        PendingLossFile.removeInFlight(in: directory)
    }
}
