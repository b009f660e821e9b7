// The thread that publishes: connects to the broker, sends what is due, and connects again.
package import Host
package import HTTP
package import MQTT
package import Records
package import StatusBoard

/// Publishes what a `LiveTap` holds to an MQTT broker, best effort.
///
/// Runs on one thread, which wakes up when something is due or the broker sends something. A broker
/// that misbehaves costs its messages and nothing else.
package final class LiveOutput: Sendable {
    /// After a connection that lasted so long, the next one is tried at once.
    private static let steady = Duration.seconds(60)
    /// The shortest time between two publications of `online`.
    private static let presencePause = Duration.seconds(5)
    /// The time in which the broker has to pass on what it was sent.
    private static let echoLimit = Duration.seconds(15)
    /// Longer messages from the broker are skipped: all that matter are one word.
    private static let payloadLimit = 1024

    package let tap: LiveTap
    private let state: StateBox<OutputReport>
    private let settings: LiveSettings
    private let broker: BrokerSettings
    private let endpoint: Endpoint
    private let environment: [String: String]
    private let device: LiveDevice
    private let format: LiveFormat
    private let clock: any HostClock
    private let rest: @Sendable (StopSignal, Duration) -> Void
    private let onChange: @Sendable (Failure?) -> Void

    /// Nothing is connected before `run`.
    ///
    /// `endpoint` is where `broker` listens. `isFiltered`: only beacons that a filter names are
    /// collected, so each is announced at once. `rest` waits before the next attempt to connect, at
    /// most for the duration that it gets; a change of the network may end it. `onChange` gets the
    /// first failure of each outage, and nil when the broker is connected again.
    package init(
        _ settings: LiveSettings,
        _ broker: BrokerSettings,
        at endpoint: Endpoint,
        environment: [String: String],
        device: LiveDevice,
        isFiltered: Bool = false,
        clock: any HostClock,
        date: @escaping @Sendable (Stamp) -> Moment,
        rest: @escaping @Sendable (StopSignal, Duration) -> Void,
        onChange: @escaping @Sendable (Failure?) -> Void = { _ in }
    ) throws {
        (self.settings, self.broker, self.endpoint) = (settings, broker, endpoint)
        (self.environment, self.device, self.clock) = (environment, device, clock)
        (self.rest, self.onChange) = (rest, onChange)
        format = LiveFormat(topic: settings.topic(of: device.id), date: date)
        tap = try LiveTap(interval: settings.interval, isFiltered: isFiltered)
        state = StateBox(OutputReport(peer: endpoint.server, since: clock.now()))
    }

    /// Publishes until `stop` is raised, then says `offline`.
    package func run(until stop: StopSignal) {
        var retry = Retry([1, 2, 5, 10, 30, 60].map { .seconds($0) })
        var announcements = Announcements(device, format, settings)
        while !stop.isRaised {
            let began = clock.now()
            do throws(Failure) {
                try session(&announcements, stop)
            } catch {
                if !stop.isRaised { failed(error) }
            }
            tap.close()
            if clock.now() - began >= Self.steady { retry.succeeded() }
            if !stop.isRaised { rest(stop, retry.next()) }
        }
    }

    // MARK: One connection

    private func session(
        _ announcements: inout Announcements,
        _ stop: StopSignal
    ) throws(Failure) {
        var connection = try MQTTConnection.connect(
            to: endpoint,
            caFile: broker.caFile,
            MQTTConnect(
                clientID: "\(broker.clientID ?? device.id)-live",
                isClean: true,
                keepAliveSeconds: 45,
                will: MQTTMessage(
                    topic: format.presence,
                    payload: LiveFormat.offline,
                    qos: 1,
                    isRetained: true
                ),
                username: broker.username,
                password: try broker.password(environment)
            ),
            payloadLimit: Self.payloadLimit,
            until: stop
        )
        var presence = Presence(echoBy: clock.now() + Self.echoLimit)
        try connection.subscribe(topics, qos: 0)
        announcements.announceAll()
        tap.open(at: clock.now())
        // A flag that changed without a connection would be wrong until its beacon sends again.
        tap.renew(at: clock.now())
        connected()
        do throws(Failure) {
            try serve(&connection, &presence, &announcements, stop)
        } catch {
            // Some brokers end the connection when they do not allow a publication.
            let mayBeDenied = presence.echoBy != nil && !stop.isRaised
            throw mayBeDenied
                ? Failure("\(error.message); \(accessAdvice)", code: error.code) : error
        }
        try connection.publish(format.presence, LiveFormat.offline, retain: true)
        connection.disconnect()
    }

    /// Publishes until `stop` is raised or the connection ends.
    private func serve(
        _ connection: inout MQTTConnection,
        _ presence: inout Presence,
        _ announcements: inout Announcements,
        _ stop: StopSignal
    ) throws(Failure) {
        var flood = Flood(began: clock.now())
        while !stop.isRaised {
            let due = try send(&connection, &presence, &announcements)
            switch try connection.receive(until: due, waking: [tap.wakeup.descriptor]) {
            case .message(let message):
                switch flood.count(at: clock.now()) {
                case ...Flood.limit: receive(message, &presence, &announcements)
                case Flood.limit + 1: record(floods)
                case Flood.endless...: throw floods
                default: break
                }
            case .subscribed(let refused, _) where !refused.isEmpty: record(isRefused(refused))
            case nil: tap.wakeup.clear()
            default: break
            }
        }
    }

    /// Whether the broker shows this gateway as connected.
    private struct Presence {
        /// When to publish `online`, next or for the first time; nil: it is published.
        var due: BootInstant?
        /// When to report that the broker passes nothing on; nil: it does, or that is reported.
        var echoBy: BootInstant?

        init(echoBy: BootInstant) {
            self.echoBy = echoBy
            due = BootInstant(nanoseconds: 0)
        }
    }

    /// Counts the broker's messages: hardly any are expected.
    private struct Flood {
        /// More per minute are ignored: publishing needs none of them, and anyone may send them.
        static let limit = 100
        /// With so many per minute reading them costs too much.
        static let endless = 10_000
        private static let span = Duration.seconds(60)
        private var began: BootInstant
        private var messages = 0

        init(began: BootInstant) { self.began = began }

        /// Returns the number of this message in its minute.
        mutating func count(at now: BootInstant) -> Int {
            if now - began >= Self.span { (began, messages) = (now, 0) }
            messages += 1
            return messages
        }
    }

    private var floods: Failure {
        Failure(
            "\(endpoint.server): sends more than \(Flood.limit) messages per minute, which are ignored; "
                + "check which program publishes to \(topics.joined(separator: " and "))",
            code: .server
        )
    }

    /// The subscribed topics.
    private var topics: [String] { [format.presence, birthTopic] }

    /// The topic on which Home Assistant says that it was started.
    private var birthTopic: String { "\(settings.discoveryPrefix)/status" }

    private func receive(
        _ message: MQTTMessage,
        _ presence: inout Presence,
        _ announcements: inout Announcements
    ) {
        if message.topic == birthTopic, message.payload == LiveFormat.online, !message.isRetained {
            announcements.announceAll()
            tap.renew(at: clock.now())
        }
        // A kept message is the state before this connection.
        guard message.topic == format.presence, !message.isRetained else { return }
        if message.payload == LiveFormat.online {
            presence.echoBy = nil
            return
        }
        // The will of an earlier connection, which the broker has ended only now.
        if presence.due == nil { presence.due = clock.now() + Self.presencePause }
    }

    /// Sends what is due; returns when something will be.
    private func send(
        _ connection: inout MQTTConnection,
        _ presence: inout Presence,
        _ announcements: inout Announcements
    ) throws(Failure) -> BootInstant? {
        let now = clock.now()
        if let due = presence.due, due <= now {
            try connection.publish(format.presence, LiveFormat.online, retain: true)
            presence.due = nil
        }
        if let limit = presence.echoBy, limit <= now {
            presence.echoBy = nil
            record(passesNothingOn)
        }
        let (messages, next) = tap.take(at: now)
        var due = [next, presence.due, presence.echoBy]
        for message in messages where announcements.saw(message) {
            if case .beacon(let key, _) = message { due.append(tap.sendAgain(key)) }
        }
        try publish(announcements.take(at: now), messages, on: &connection)
        return (due + [announcements.due(at: now)]).compactMap { $0 }.min()
    }

    private func publish(
        _ descriptions: [(topic: String, text: [UInt8])],
        _ messages: [LiveMessage],
        on connection: inout MQTTConnection
    ) throws(Failure) {
        var sent = 0
        defer {
            tap.drop(messages.count - sent)
            state.update { $0.published += sent }
        }
        for (topic, text) in descriptions { try connection.publish(topic, text, retain: true) }
        for message in messages {
            let (topic, text, isKept) = format.message(message)
            try connection.publish(topic, text, retain: isKept)
            sent += 1
        }
    }

    // MARK: Status

    /// Its present state, for `status`.
    package var report: OutputReport {
        var report = state.value
        report.dropped = tap.dropped
        if let full = tap.wasFull, clock.now() - full < .seconds(900) {
            let other = report.lastError.flatMap { $0.at > full ? $0 : nil }
            report.lastError = other ?? OutputReport.ErrorAt(failure: isFull, at: full)
        }
        return report
    }

    private func connected() {
        let now = clock.now()
        let isBack = state.update { report in
            defer { report.became(.connected, at: now) }
            return report.lastError != nil
        }
        if isBack { onChange(nil) }
    }

    private func failed(_ failure: Failure) {
        let now = clock.now()
        let isFirst = state.update { report in
            let isFirst = report.state == .connected || report.lastError == nil
            report.became(.connecting, at: now)
            report.lastError = OutputReport.ErrorAt(failure: failure, at: now)
            return isFirst
        }
        if isFirst { onChange(failure) }
    }

    /// Reports a problem of a connection that works otherwise.
    private func record(_ failure: Failure) {
        let now = clock.now()
        state.update { $0.lastError = OutputReport.ErrorAt(failure: failure, at: now) }
        onChange(failure)
    }

    /// Why beacons are missing.
    private var isFull: Failure {
        Failure(
            "more than \(LiveValues.beaconLimit) beacons are heard, so those that are heard least often are not "
                + "published; name the wanted ones in beacons.allow"
        )
    }

    private var client: String { broker.username.map { "the user \($0)" } ?? "this client" }

    private var accessAdvice: String {
        "its access list must let \(client) write and read \(format.topic)/#"
    }

    private var passesNothingOn: Failure {
        Failure(
            "\(endpoint.server): does not pass on \(format.presence); \(accessAdvice)",
            code: .server
        )
    }

    private func isRefused(_ filters: [String]) -> Failure {
        Failure(
            "\(endpoint.server): refuses to send \(filters.joined(separator: ", ")); its access "
                + "list must let \(client) read that",
            code: .server
        )
    }
}
