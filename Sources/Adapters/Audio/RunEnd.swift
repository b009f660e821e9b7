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
    /// When it failed after that stop; nil if it has not.
    private var failed: Stamp?
    /// The run before ended with its window: audio is due from `stamp` on, the present one's start.
    private var isDue = false
    /// The longest time that may be missing at the edge of a window.
    static let edge = Duration.milliseconds(100)

    init(stamp: Stamp, reason: String) {
        (self.stamp, self.reason) = (stamp, reason)
    }

    /// Takes the end of the run before this start of the source; nil if nothing is due since then.
    init?(before sink: any RecordSink, at now: Stamp) {
        if let end = sink.endOfAudio() {
            self.init(stamp: end, reason: "the source was restarted")
            stopped = sink.stoppedAt
        } else if let opens = sink.window.opens {
            let stamp = now.advanced(by: opens - now.boot)
            self.init(stamp: stamp, reason: "the device started after its window")
            isDue = true
        } else {
            return nil
        }
    }

    /// Records that the source failed, which ends a planned pause: audio is lost from now on.
    mutating func fails(at now: Stamp, _ reason: String) {
        guard stopped != nil || isDue, failed == nil else { return }
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
        guard let stopped else {
            let from = Self.later(stamp, opens)
            let isOnTime = from.boot == opens && start.boot - from.boot <= Self.edge
            return isOnTime ? [] : [gap(from, start, reason)]
        }
        let wasFailing = stopped.boot - stamp.boot > Self.slowestStop
        let before =
            wasFailing ? [gap(stamp, stopped, "there was no audio before a planned stop")] : []
        let pause = Self.pause(wasFailing ? stopped : stamp, failed ?? start, device)
        let failed = failed.map { Self.later($0, opens) }
        return before + [pause] + (failed.map { [gap($0, start, reason)] } ?? [])
    }

    private static func later(_ stamp: Stamp, _ opens: BootInstant?) -> Stamp {
        stamp.advanced(by: max(.zero, (opens ?? stamp.boot) - stamp.boot))
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
