// Looks at the fleet, and tells what has changed.
import Host
import SQLite

/// A way to tell an alert.
struct AlertChannel: Sendable {
    let name: String
    /// Gets the alert and its JSON; throws where it may not have been told, or was stopped.
    let tell: @Sendable (Alert, String, StopSignal) throws -> Void
}

/// Used by one thread; a round of it takes as long as the channels at most, one alert of a slow one each.
final class AlertController {
    private struct Tries {
        var failures = 0
        var next: BootInstant?
        /// What its last one took.
        var took = Duration.zero
        /// Up to this number told, and not yet out of the book: not to be told again.
        var told: Int64 = 0
        /// To be told, and not in the book.
        var unwritten: [Alert] = []
    }

    private static let pause = Duration.seconds(10)
    /// What takes longer has the others have their turn.
    private static let quick = Duration.seconds(1)
    /// Before the second try; twice as long before each further one, up to the longest.
    private static let firstWait = 15
    private static let longestWait = 900

    private let book: AlertBook
    private let channels: [AlertChannel]
    private let clock: any HostClock
    private let look: (Int64) throws -> (devices: [DeviceState], isWhole: Bool)
    private let log: (String) -> Void
    private var nextLook: BootInstant?
    private var tries: [String: Tries]
    /// What the book does not take: on a full disk no batch is stored, and just then devices become late.
    private var unwritten: [String: AlertMarks?] = [:]
    /// It takes nothing since its last change.
    private var isFull = false

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
        tries = Dictionary(channels.map { ($0.name, Tries()) }) { $1 }
    }

    /// A look where one is due, and alerts by each channel that may try; how long until there is more to do.
    func round(until stop: StopSignal) throws -> Duration {
        let now = clock.now()
        if nextLook.map({ now >= $0 }) ?? true {
            nextLook = now + Self.pause
            try lookAround(at: clock.wall().milliseconds)
        }
        var isMore = false
        // Nobody waits for the same slow one more than once.
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
            // What fails here is not the book.
            return log("alerts wait, the devices cannot be looked at: \(error)")
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
                // Later, where it cannot be known what is no change.
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

    /// Goes on without the book where it can be read and takes nothing; throws where it is damaged.
    private func write(_ change: () throws -> Void) throws {
        do {
            try change()
            isFull = false
        } catch let error as SQLiteError where error.isDamage {
            throw error
        } catch {
            if !isFull { log("what is told is kept in memory alone: \(error)") }
            isFull = true
        }
    }

    private func took(_ channel: AlertChannel) -> Duration {
        tries[channel.name, default: Tries()].took
    }

    /// All that a quick channel has to tell, one of a slow one; whether there may be another one to be told at once.
    private func tellAll(by channel: AlertChannel, until stop: StopSignal) throws -> Bool {
        while try tell(by: channel, until: stop) {
            guard !stop.isRaised, took(channel) < Self.quick else { return true }
        }
        return false
    }

    /// Whether there may be another one to be told at once.
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
            log("an alert waits, and is tried again in \(wait) s: \(error)")
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

    /// What a channel is to tell next, with its number in the book.
    private func next(for channel: String) throws -> (number: Int64?, json: String)? {
        let state = tries[channel, default: Tries()]
        if let (number, json) = try book.first(for: channel, after: state.told) {
            return (number, json)
        }
        return try state.unwritten.first.map { (nil, try $0.json()) }
    }

    private func removeTold(of channel: String) throws {
        try write {
            try book.remove(upTo: tries[channel, default: Tries()].told, of: channel)
            tries[channel]?.told = 0
        }
    }
}
