// Inspects the fleet and sends alerts for changes.
import Host
import SQLite

/// A destination for alerts.
struct AlertChannel: Sendable {
    let name: String
    /// Sends an alert and its JSON; throws if it may not have arrived, or was stopped.
    let tell: @Sendable (Alert, String, StopSignal) throws -> Void
}

/// Checks the devices and sends alerts through each channel; used by one thread.
///
/// A round takes as long as one alert of each slow channel at most.
final class AlertController {
    private struct Tries {
        var failures = 0
        var next: BootInstant?
        /// The duration of the last try.
        var took = Duration.zero
        /// Alerts up to this number are sent but not yet deleted from the book.
        var told: Int64 = 0
        /// Alerts to send that are not in the book.
        var unwritten: [Alert] = []
    }

    private static let pause = Duration.seconds(10)
    /// A channel slower than this sends one alert per round.
    private static let quick = Duration.seconds(1)
    /// Seconds before the second try; doubles with each try, up to the longest.
    private static let firstWait = 15
    private static let longestWait = 900

    private let book: AlertBook
    private let channels: [AlertChannel]
    private let clock: any HostClock
    private let look: (Int64) throws -> (devices: [DeviceState], isWhole: Bool)
    private let log: (String) -> Void
    private var nextLook: BootInstant?
    private var tries: [String: Tries]
    /// Changes that could not be stored: on a full disk no batch is stored, so devices become late.
    private var unwritten: [String: AlertMarks?] = [:]
    /// True if the last write to the book failed.
    private var isFull = false

    /// `look` returns the devices at a time (milliseconds since 1970), and whether all events are
    /// known.
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
        tries = Dictionary(channels.map { ($0.name, Tries()) }) { $1 }
    }

    /// Checks the devices if due, and sends alerts; returns the time until the next round.
    func round(until stop: StopSignal) throws -> Duration {
        let now = clock.now()
        if nextLook.map({ now >= $0 }) ?? true {
            nextLook = now + Self.pause
            try lookAround(at: clock.wall().milliseconds)
        }
        var isMore = false
        // Fast channels first, so that none waits for the same slow one twice.
        let byTime = channels.sorted { took($0) < took($1) }
        for channel in byTime where !stop.isRaised {
            isMore = try tellAll(by: channel, until: stop) || isMore
        }
        return isMore ? .zero : max(.zero, (nextLook ?? now) - clock.now())
    }

    private func lookAround(at now: Int64) throws {
        let seen: (devices: [DeviceState], isWhole: Bool)
        do {
            seen = try look(now)
        } catch {
            // This is not a failure of the book.
            return log("alerts are delayed, the devices cannot be read: \(error)")
        }
        var known = try book.marks()
        for (device, marks) in unwritten { known[device] = marks }
        var changed: [String: AlertMarks?] = [:]
        var alerts: [Alert] = []
        for device in seen.devices {
            let old = known[device.id]
            var new: AlertMarks?
            if !device.isRevoked {
                let isWhole = seen.isWhole && device.isWhole
                // Wait until all is known, so that old troubles are not reported as changes.
                new = old ?? (isWhole ? AlertMarks(firstSight: device, at: now) : nil)
                alerts += new?.take(device, isWhole: isWhole, at: now) ?? []
            }
            if new != old { changed.updateValue(new, forKey: device.id) }
        }
        unwritten.merge(changed) { $1 }
        for channel in channels { tries[channel.name]?.unwritten += alerts }
        guard !unwritten.isEmpty else { return }
        try write {
            try book.note(unwritten, tries.mapValues(\.unwritten))
            unwritten = [:]
            for name in tries.keys { tries[name]?.unwritten = [] }
        }
    }

    /// Runs a write; on failure goes on in memory, unless the book is damaged, which throws.
    private func write(_ change: () throws -> Void) throws {
        do {
            try change()
            isFull = false
        } catch let error as SQLiteError where error.isDamage {
            throw error
        } catch {
            if !isFull { log("alerts are kept in memory only, they cannot be stored: \(error)") }
            isFull = true
        }
    }

    private func took(_ channel: AlertChannel) -> Duration {
        tries[channel.name, default: Tries()].took
    }

    /// Sends all alerts of a fast channel, one of a slow one; returns whether more may be due now.
    private func tellAll(by channel: AlertChannel, until stop: StopSignal) throws -> Bool {
        while try tell(by: channel, until: stop) {
            guard !stop.isRaised, took(channel) < Self.quick else { return true }
        }
        return false
    }

    /// Sends the channel's next alert if due; returns whether more may be due now.
    private func tell(by channel: AlertChannel, until stop: StopSignal) throws -> Bool {
        let state = tries[channel.name, default: Tries()]
        guard state.next.map({ clock.now() >= $0 }) ?? true else { return false }
        if state.told > 0 { try removeTold(of: channel.name) }
        guard let (number, json) = try next(for: channel.name) else { return false }
        let begun = clock.now()
        do {
            defer { tries[channel.name]?.took = clock.now() - begun }
            try channel.tell(try Alert(json: json), json, stop)
        } catch {
            guard !stop.isRaised else { return false }
            let wait = min(Self.longestWait, Self.firstWait << min(state.failures, 10))
            tries[channel.name]?.failures += 1
            tries[channel.name]?.next = clock.now() + .seconds(wait)
            log("an alert was not sent, retry in \(wait) s: \(error)")
            return false
        }
        tries[channel.name]?.failures = 0
        tries[channel.name]?.next = nil
        if let number {
            tries[channel.name]?.told = number
            try removeTold(of: channel.name)
        } else {
            tries[channel.name]?.unwritten.removeFirst()
        }
        return true
    }

    /// Returns a channel's next alert, with its number if it is in the book.
    private func next(for channel: String) throws -> (number: Int64?, json: String)? {
        let state = tries[channel, default: Tries()]
        if let (number, json) = try book.first(for: channel, after: state.told) {
            return (number, json)
        }
        return state.unwritten.first.map { (nil, $0.json) }
    }

    private func removeTold(of channel: String) throws {
        try write {
            try book.remove(upTo: tries[channel, default: Tries()].told, of: channel)
            tries[channel]?.told = 0
        }
    }
}
