// What would end with the program while the disk takes nothing: kept for the next start, which enters it.
import Glibc
import Host
import Queue
import Records

/// Records and losses on their way to the disk, in files of the runtime directory.
struct InFlightFile: Sendable {
    private let queue: Queue
    private let clock: any HostClock
    private let directory: String
    private let bootID: String
    /// When the disk was last seen to take what there was.
    private let lastWritten: StateBox<Stamp>

    init(_ queue: Queue, clock: any HostClock, directory: String, bootID: String) {
        self.queue = queue
        self.clock = clock
        self.directory = directory
        self.bootID = bootID
        lastWritten = StateBox(clock.stamp())
    }

    /// Enters what the run before this one could not write.
    func enter() {
        enterOfOtherBoots()
        let found = PendingLossFile.found(in: directory, bootID: bootID, queue.streams)
        let inFlight = PendingLossFile.inFlight(in: directory, bootID: bootID, queue.streams)
        guard !found.isEmpty || !inFlight.isEmpty else { return }
        for loss in found.compactMap(lost) { queue.note(loss) }
        for loss in inFlight.compactMap(lost) { queue.note(loss) }
        // Where the disk still refuses they go on waiting there, and in memory.
        let isEntered = (try? queue.flushed()) != nil
        if isEntered { keep([]) } else { keepWaiting() }
        PendingLossFile.removeInFlight(in: directory)
    }

    /// Where the disk still refuses, the next start tries again.
    private func enterOfOtherBoots() {
        let left = PendingLossFile.ofOtherBoots(in: directory, queue.streams)
        let notes = left.map {
            let losses = $0.losses.compactMap(lost) + $0.inFlight.compactMap(lost)
            return LossNote(name: $0.name, bootID: $0.bootID, losses: losses)
        }
        // At once: what is accepted later must not be taken for what was in flight.
        guard !notes.isEmpty, (try? queue.enter(notes)) != nil else { return }
        for note in left { unlink(note.path) }
    }

    /// nil where it is in the database.
    private func lost(_ left: PendingLossFile.Waiting) -> Loss? {
        left.turn.map { queue.hasEntered($0) } == true ? nil : left.loss
    }

    private func lost(_ left: PendingLossFile.InFlight) -> Loss? {
        queue.lost(of: left.records, from: left.from, to: left.to)
    }

    /// At each health tick: while the writer hangs or the disk refuses, a crash may come.
    func look() {
        let now = clock.stamp()
        let hangs = queue.writerWord.overdue(at: now.boot) >= .seconds(2)
        if hangs || queue.isRefused { return keep(at: now) }
        lastWritten.update { $0 = now }
        if queue.newLosses.isEmpty { PendingLossFile.remove(in: directory) }
        PendingLossFile.removeInFlight(in: directory)
    }

    /// At an end that waits no longer: a disk may be slow and not hang.
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

    /// What was in flight is among these.
    func keep(_ losses: [Loss]) {
        let waiting = losses.map { PendingLossFile.Waiting(loss: $0) }
        PendingLossFile.keep(waiting, in: directory, bootID: bootID)
        PendingLossFile.removeInFlight(in: directory)
    }
}
