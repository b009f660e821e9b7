// How the last run of the audio source ended, as the queue remembers it.
import Host
import Queue
import Records

/// A memo in the queue about the audio source.
struct AudioMemo: Equatable, Sendable {
    enum State: Equatable, Sendable {
        /// It runs, or ended without having been asked to.
        case on
        /// It is switched off: missing audio is not a gap.
        case off
        /// It was stopped on purpose, and will start again.
        case stopped(Stamp)
        /// A window of its schedule closed.
        case closed(Stamp)
    }

    var state: State
    /// The start of the last window, from which on audio was due; nil without a schedule, and if it
    /// was in another boot.
    var due: Stamp?

    private static let name = "audio"

    init(_ state: State, due: Stamp? = nil) {
        (self.state, self.due) = (state, due)
    }

    /// Reads the memo; nil if there is none.
    ///
    /// Its state was written in the same boot as the newest audio if there is any of this boot,
    /// because `on` goes with the first commit of a run.
    init?(_ queue: Queue) {
        let parts = (queue.remembered(Self.name) ?? "").split(separator: " ")
        let numbers = parts.dropFirst().compactMap { Int64($0) }
        let isThisBoot = parts.last.map(String.init) == queue.bootID
        let stamps = stride(from: 0, to: numbers.count - 1, by: 2).map {
            Stamp(
                boot: BootInstant(nanoseconds: numbers[$0]),
                wall: WallTime(milliseconds: numbers[$0 + 1])
            )
        }
        let (first, second) = (stamps.first, stamps.dropFirst().first)
        switch (parts.first, first) {
        case ("on", _): self.init(.on, due: isThisBoot ? first : nil)
        case ("off", _): self.init(.off)
        case ("stopped", let stamp?): self.init(.stopped(stamp), due: isThisBoot ? second : nil)
        case ("closed", let stamp?): self.init(.closed(stamp), due: isThisBoot ? second : nil)
        default: return nil
        }
    }

    func keep(in queue: Queue) {
        let (word, stamp): (String, Stamp?) =
            switch state {
            case .on: ("on", nil)
            case .off: ("off", nil)
            case .stopped(let stamp): ("stopped", stamp)
            case .closed(let stamp): ("closed", stamp)
            }
        let stamps = [stamp, due].compactMap { $0 }
        let numbers = stamps.map { " \($0.boot.nanoseconds) \($0.wall.milliseconds)" }
        queue.remember(Self.name, "\(word)\(numbers.joined()) \(queue.bootID)")
    }
}
