// How the audio source ended, stored for its next start.
import Host
import Queue

/// A memo in the queue about the audio source.
enum AudioMemo: Equatable, Sendable {
    /// It runs, or ended without having been asked to.
    case on
    /// It is switched off: missing audio is not a gap.
    case off
    /// It was stopped on purpose, and will start again.
    case stopped(Stamp)

    private static let name = "audio"

    /// Reads the memo; nil if there is none.
    ///
    /// It was written in the same boot as the newest audio if there is any of this boot, because
    /// `on` goes with the first commit of a run.
    init?(_ queue: Queue) {
        let parts = (queue.remembered(Self.name) ?? "").split(separator: " ")
        switch parts.first {
        case "on": self = .on
        case "off": self = .off
        case "stopped":
            let numbers = parts.dropFirst().compactMap { Int64($0) }
            guard numbers.count == 2 else { return nil }
            self = .stopped(
                Stamp(
                    boot: BootInstant(nanoseconds: numbers[0]),
                    wall: WallTime(milliseconds: numbers[1])
                )
            )
        default: return nil
        }
    }

    func keep(in queue: Queue) {
        let text =
            switch self {
            case .on: "on"
            case .off: "off"
            case .stopped(let stamp): "stopped \(stamp.boot.nanoseconds) \(stamp.wall.milliseconds)"
            }
        queue.remember(Self.name, text)
    }
}
