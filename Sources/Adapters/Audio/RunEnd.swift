// How the audio before a run ended, and the events that report what is missing since.
import Host
import Records

/// When the last run ended, and why.
struct RunEnd {
    /// The longest time from the last audio to a planned stop of a device that worked.
    private static let slowestStop = Duration.seconds(2)

    var stamp: Stamp
    var reason: String
    /// When the source was stopped on purpose; nil if it was not.
    private var stopped: Stamp?
    /// When its schedule closed the window; nil if the run before ended otherwise.
    private var closed: Stamp?
    /// The longest time that may be missing at the edge of a window.
    private static let edge = Duration.milliseconds(100)
    /// When it failed after that stop; nil if it has not.
    private var failed: Stamp?

    init(stamp: Stamp, reason: String) {
        (self.stamp, self.reason) = (stamp, reason)
    }

    /// Takes the end of the run before this start of the source; nil if there is none.
    init?(before sink: any RecordSink) {
        guard let end = sink.endOfSound() else { return nil }
        self.init(stamp: end, reason: "the source was restarted")
        stopped = sink.stoppedAt
        closed = sink.closedAt
    }

    /// Records that the source failed, which ends a planned pause: audio is lost from now on.
    mutating func fails(at now: Stamp, _ reason: String) {
        guard stopped ?? closed != nil, failed == nil else { return }
        (failed, self.reason) = (now, reason)
    }

    /// Returns the events for the audio that is missing until `start`.
    ///
    /// In a planned pause nothing is lost. Before it something is, if the source was failing then,
    /// and after it, if the source could not start. `opens` is the start of the present window, for
    /// which the device was opened before: nothing is missing until then, and audio is due from
    /// then on.
    func events(
        to start: Stamp,
        device: String,
        _ settings: AudioSettings,
        opens: BootInstant? = nil
    ) -> [Event] {
        func gap(_ from: Stamp, _ to: Stamp, _ reason: String) -> Event {
            settings.gap(from: from, to: to, device: device, reason: reason)
        }
        func missing(_ from: Stamp, _ to: Stamp, _ reason: String) -> [Event] {
            to.boot - from.boot > Self.edge ? [gap(from, to, reason)] : []
        }
        let due = opens.map { start.advanced(by: $0 - start.boot) }
        if let closed {
            let late = failed == nil ? "the device started after its window" : reason
            return missing(stamp, closed, "there was no audio before the window closed")
                + ((due ?? failed).map { missing($0, start, late) } ?? [])
        }
        guard let stopped else {
            guard let due else { return [gap(stamp, start, reason)] }
            guard due.boot <= stamp.boot else { return missing(due, start, reason) }
            return start.boot > stamp.boot ? [gap(stamp, start, reason)] : []
        }
        let wasFailing = stopped.boot - stamp.boot > Self.slowestStop
        let before =
            wasFailing ? [gap(stamp, stopped, "there was no audio before a planned stop")] : []
        let pause = Self.pause(wasFailing ? stopped : stamp, failed ?? start, device)
        let failed = failed.map { failed in
            due.flatMap { $0.boot > failed.boot ? $0 : nil } ?? failed
        }
        return before + [pause] + (failed.map { [gap($0, start, reason)] } ?? [])
    }

    private static func pause(_ from: Stamp, _ to: Stamp, _ device: String) -> Event {
        let length = max(.zero, to.boot - from.boot)
        return Event(
            .gap,
            source: "audio",
            detail: [
                ("state", .text("off")), ("off_s", .number(Double(length.milliseconds) / 1000)),
                ("from", .time(from.wall(by: to))), ("to", .time(to.wall)),
                ("device", .text(device)), ("reason", .text("stopped and started again")),
            ],
            stamp: to
        )
    }
}
