// Looks at the fleet, and tells what has changed.
import Host

/// A way to tell an alert.
struct AlertChannel: Sendable {
    let name: String
    /// Gets the alert and its JSON; throws where it may not have been told, or was stopped.
    let tell: @Sendable (Alert, String, StopSignal) throws -> Void
}

/// Used by one thread; a round of it takes as long as the channels at most.
final class AlertDesk {
    private struct Tries {
        var failures = 0
        var next: BootInstant?
        /// Told, and not yet out of the book: not to be told again.
        var told: Int64?
    }

    private static let pause = Duration.seconds(10)
    /// Before the second try; twice as long before each further one, up to the longest.
    private static let firstWait = 15
    private static let longestWait = 900

    private let book: AlertBook
    private let channels: [AlertChannel]
    private let clock: any HostClock
    private let look: (Int64) throws -> (devices: [DeviceState], isWhole: Bool)
    private let log: (String) -> Void
    private var nextLook: BootInstant?
    private var tries: [String: Tries] = [:]

    /// `look`: the devices at a time in milliseconds since 1970, and whether their events are all known.
    init(
        directory: String,
        channels: [AlertChannel],
        clock: any HostClock,
        look: @escaping (Int64) throws -> (devices: [DeviceState], isWhole: Bool),
        log: @escaping (String) -> Void
    ) throws {
        book = try AlertBook(directory: directory)
        try book.keep(only: channels.map(\.name))
        (self.channels, self.clock, self.look, self.log) = (channels, clock, look, log)
    }

    /// A look where one is due, and an alert by each channel that may try; how long until there is more to do.
    func round(until stop: StopSignal) throws -> Duration {
        let now = clock.now()
        if nextLook.map({ now >= $0 }) ?? true {
            nextLook = now + Self.pause
            try lookAround(at: clock.wall().milliseconds)
        }
        var isMore = false
        for channel in channels where !stop.isRaised {
            isMore = try tell(by: channel, until: stop) || isMore
        }
        return isMore ? .zero : max(.zero, (nextLook ?? now) - clock.now())
    }

    private func lookAround(at now: Int64) throws {
        let seen: (devices: [DeviceState], isWhole: Bool)
        do {
            seen = try look(now)
        } catch {
            // What fails here is not the book.
            return log("alerts wait, the devices cannot be looked at: \(error)")
        }
        let known = try book.marks()
        var changed: [String: AlertMarks?] = [:]
        var alerts: [Alert] = []
        for device in seen.devices {
            let old = known[device.id]
            var new: AlertMarks?
            if !device.isRevoked {
                // Later, where it cannot be known what is no change.
                new = old ?? (seen.isWhole ? AlertMarks(firstSight: device, at: now) : nil)
                alerts += new?.take(device, isWhole: seen.isWhole, at: now) ?? []
            }
            if new != old { changed.updateValue(new, forKey: device.id) }
        }
        try book.note(changed, alerts, for: channels.map(\.name))
    }

    /// Whether there may be another one to be told at once.
    private func tell(by channel: AlertChannel, until stop: StopSignal) throws -> Bool {
        var state = tries[channel.name] ?? Tries()
        defer { tries[channel.name] = state }
        guard state.next.map({ clock.now() >= $0 }) ?? true,
            let (number, json) = try book.first(for: channel.name)
        else { return false }
        if state.told != number {
            do {
                try channel.tell(try Alert(json: json), json, stop)
            } catch {
                guard !stop.isRaised else { return false }
                let wait = min(Self.longestWait, Self.firstWait << min(state.failures, 10))
                state.failures += 1
                state.next = clock.now() + .seconds(wait)
                log("an alert waits, and is tried again in \(wait) s: \(error)")
                return false
            }
        }
        (state.failures, state.next, state.told) = (0, nil, number)
        do {
            try book.remove(number, of: channel.name)
        } catch {
            state.next = clock.now() + .seconds(Self.firstWait)
            throw error
        }
        state.told = nil
        return true
    }
}
