// Inspects the fleet and sends alerts for changes.
import Host
import SQLite

/// A destination for alerts.
struct AlertChannel: Sendable {
    let name: String
    /// Sends an alert and its JSON; throws if it may not have arrived, or was stopped.
    let deliver: @Sendable (Alert, String, StopSignal) throws -> Void
}

/// Checks the devices and sends alerts through each channel; used by one thread.
///
/// A round takes as long as one alert of each slow channel at most.
final class AlertController {
    /// A channel and the state of its tries.
    private final class Outbox {
        let channel: AlertChannel
        var failures = 0
        var next: BootInstant?
        /// The duration of the last try.
        var took = Duration.zero
        /// Alerts up to this number are sent but not yet deleted from the book.
        var reported: Int64 = 0
        /// Alerts to send that are not in the book.
        var unwritten: [Alert] = []

        init(_ channel: AlertChannel) { self.channel = channel }
    }

    private static let pause = Duration.seconds(10)
    /// A channel slower than this sends one alert per round.
    private static let quick = Duration.seconds(1)
    /// Seconds before the second try; doubles with each try, up to the longest.
    private static let firstWait = 15
    private static let longestWait = 900

    private let book: AlertBook
    private let outboxes: [Outbox]
    private let clock: any HostClock
    private let look: (Int64) throws -> (devices: [DeviceState], isWhole: Bool)
    private let log: (String) -> Void
    private var nextLook: BootInstant?
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
        (self.clock, self.look, self.log) = (clock, look, log)
        outboxes = channels.map { Outbox($0) }
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
        for outbox in outboxes.sorted(by: { $0.took < $1.took }) where !stop.isRaised {
            isMore = try reportAll(by: outbox, until: stop) || isMore
        }
        return isMore ? .zero : max(.zero, (nextLook ?? now) - clock.now())
    }

    /// Stores alerts for each channel; they are on the disk when this returns.
    func add(_ alerts: [Alert]) throws {
        try book.record([:], outboxes.map { ($0.channel.name, alerts) })
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
                alerts += new?.receive(device, isWhole: isWhole, at: now) ?? []
            }
            if new != old { changed.updateValue(new, forKey: device.id) }
        }
        unwritten.merge(changed) { $1 }
        for outbox in outboxes { outbox.unwritten += alerts }
        guard !unwritten.isEmpty else { return }
        try write {
            try book.record(unwritten, outboxes.map { ($0.channel.name, $0.unwritten) })
            unwritten = [:]
            for outbox in outboxes { outbox.unwritten = [] }
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

    /// Sends all alerts of a fast channel, one of a slow one; returns whether more may be due now.
    private func reportAll(by outbox: Outbox, until stop: StopSignal) throws -> Bool {
        while try deliver(by: outbox, until: stop) {
            guard !stop.isRaised, outbox.took < Self.quick else { return true }
        }
        return false
    }

    /// Sends the channel's next alert if due; returns whether more may be due now.
    private func deliver(by outbox: Outbox, until stop: StopSignal) throws -> Bool {
        guard outbox.next.map({ clock.now() >= $0 }) ?? true else { return false }
        if outbox.reported > 0 { try removeReported(of: outbox) }
        guard let (number, json) = try next(of: outbox) else { return false }
        let begun = clock.now()
        do {
            defer { outbox.took = clock.now() - begun }
            try outbox.channel.deliver(try Alert(json: json), json, stop)
        } catch {
            guard !stop.isRaised else { return false }
            let wait = min(Self.longestWait, Self.firstWait << min(outbox.failures, 10))
            outbox.failures += 1
            outbox.next = clock.now() + .seconds(wait)
            log("an alert was not sent, retry in \(wait) s: \(error)")
            return false
        }
        (outbox.failures, outbox.next) = (0, nil)
        if let number {
            outbox.reported = number
            try removeReported(of: outbox)
        } else {
            outbox.unwritten.removeFirst()
        }
        return true
    }

    /// Returns a channel's next alert, with its number if it is in the book.
    private func next(of outbox: Outbox) throws -> (number: Int64?, json: String)? {
        if let (number, json) = try book.first(for: outbox.channel.name, after: outbox.reported) {
            return (number, json)
        }
        return outbox.unwritten.first.map { (nil, $0.json) }
    }

    private func removeReported(of outbox: Outbox) throws {
        try write {
            try book.remove(upTo: outbox.reported, of: outbox.channel.name)
            outbox.reported = 0
        }
    }
}
