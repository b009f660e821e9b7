// A connection to an MQTT broker, driven by one thread.
package import Host
package import HTTP

/// Something that the broker sent, beside answers to pings.
package enum MQTTEvent: Sendable, Equatable {
    /// A message; the caller acknowledges one of QoS 1.
    case message(MQTTMessage)
    /// The broker has acknowledged a message that was published with QoS 1.
    case published(id: UInt16)
    /// The broker has answered `subscribe`: the filters that it refused, and those for which it
    /// grants a lower QoS than was asked for.
    case subscribed(refused: [String], limited: [String] = [])
    case unsubscribed
    /// The broker has answered all pings, and so has received everything sent before the last one.
    case answeredPing
}

/// A connection to a broker (MQTT 3.1.1), which pings it while nothing else is sent.
///
/// An error is a `Failure` with the next step; the connection cannot be used after one.
package struct MQTTConnection: ~Copyable {
    /// The broker has kept the session of this client id from an earlier connection.
    package private(set) var isResumed = false
    private var stream: ByteStream
    private var reader: MQTTReader
    private let server: String
    private let stop: StopSignal
    private let clock = SystemClock()
    private let silenceLimit: Duration
    private let patience: Duration
    private var sentAt: BootInstant
    private var receivedAt: BootInstant
    /// Pings without an answer, and since when one is awaited.
    private var pings = 0
    private var pingedAt: BootInstant
    private var lastID: UInt16 = 0
    /// Messages published with QoS 1 that the broker has not acknowledged.
    private var unacknowledged: Set<UInt16> = []
    private var subscribing: (id: UInt16, filters: [String], qos: UInt8)?
    private var unsubscribing: UInt16?

    /// Bytes that are read at once.
    private static let step = 16 << 10

    private init(
        _ stream: consuming ByteStream,
        server: String,
        keepAlive: Duration,
        payloadLimit: Int,
        patience: Duration,
        stop: StopSignal
    ) {
        self.patience = patience
        (self.server, self.stop, silenceLimit) = (server, stop, keepAlive)
        reader = MQTTReader(payloadLimit: payloadLimit)
        self.stream = stream
        sentAt = clock.now()
        (receivedAt, pingedAt) = (sentAt, sentAt)
    }

    /// Connects and waits for the broker's answer; throws also if `stop` was raised.
    ///
    /// `payloadLimit`: a longer payload is skipped (`MQTTMessage.skipped`). `patience`: how long an
    /// answer, or room for a write, may take.
    package static func connect(
        to endpoint: Endpoint,
        caFile: String?,
        _ packet: MQTTConnect,
        payloadLimit: Int = 256 << 10,
        patience: Duration = .seconds(15),
        until stop: StopSignal
    ) throws(Failure) -> MQTTConnection {
        let stream = try ByteStream.connect(
            to: endpoint,
            caFile: caFile,
            names: BrokerSettings.names,
            until: stop
        )
        var connection = MQTTConnection(
            stream,
            server: endpoint.server,
            keepAlive: .seconds(Int64(max(1, packet.keepAliveSeconds))),
            payloadLimit: payloadLimit,
            patience: patience,
            stop: stop
        )
        try connection.greet(packet)
        return connection
    }

    private mutating func greet(_ connect: MQTTConnect) throws(Failure) {
        try send(.connect(connect))
        let deadline = clock.now() + patience
        while true {
            if let packet = try next() {
                guard case .connectAck(let isPresent, let code) = packet else {
                    throw broken("its first packet is not CONNACK")
                }
                guard code == 0 else { throw refused(code) }
                isResumed = isPresent && !connect.isClean
                return
            }
            let left = deadline - clock.now()
            guard left > .zero else { throw silent() }
            var entries = [PollEntry(stream.descriptor), PollEntry(stop.descriptor)]
            _ = stop.wait(for: &entries, timeout: left)
            if stop.isRaised { throw Failure("\(server): stopped while connecting") }
        }
    }

    // MARK: Sending

    /// Publishes a message; returns its packet id, or 0 with QoS 0.
    ///
    /// Once the stop signal is raised, sends only what the socket takes at once.
    @discardableResult package mutating func publish(
        _ topic: String,
        _ payload: [UInt8],
        qos: UInt8 = 0,
        retain: Bool = false
    ) throws(Failure) -> UInt16 {
        guard (1...65_535).contains(topic.utf8.count), payload.count <= 1 << 20 else {
            throw Failure("a message of \(payload.count) bytes is too long to be published")
        }
        var message = MQTTMessage(topic: topic, payload: payload, qos: qos, isRetained: retain)
        if qos > 0 {
            guard unacknowledged.count < 10_000 else {
                throw Failure("\(server): does not acknowledge what it is sent", code: .server)
            }
            message.id = nextID()
            unacknowledged.insert(message.id)
        }
        try send(.publish(message))
        return message.id
    }

    /// Asks for messages; the answer is `MQTTEvent.subscribed`, and messages may come before it.
    package mutating func subscribe(_ filters: [String], qos: UInt8 = 1) throws(Failure) {
        let id = nextID()
        subscribing = (id, filters, qos)
        try send(.subscribe(id: id, filters: filters, qos: qos))
    }

    /// Ends subscriptions; the answer is `MQTTEvent.unsubscribed`.
    package mutating func unsubscribe(_ filters: [String]) throws(Failure) {
        let id = nextID()
        unsubscribing = id
        try send(.unsubscribe(id: id, filters: filters))
    }

    /// Acknowledges messages of QoS 1.
    package mutating func acknowledge(_ ids: [UInt16]) throws(Failure) {
        try send(bytes: ids.flatMap { MQTTPacket.publishAck(id: $0).bytes })
    }

    /// A ping is not answered yet.
    package var isPinging: Bool { pings > 0 }

    /// Asks for `MQTTEvent.answeredPing`, which comes once all pings are answered.
    package mutating func ping() throws(Failure) {
        if pings == 0 { pingedAt = clock.now() }
        pings += 1
        try send(.pingRequest)
    }

    /// Says that this is an orderly end, so that the broker does not publish the will.
    package consuming func disconnect() { try? send(.disconnect) }

    private mutating func nextID() -> UInt16 {
        repeat { lastID = lastID == .max ? 1 : lastID + 1 } while unacknowledged.contains(lastID)
        return lastID
    }

    private mutating func send(_ packet: MQTTPacket) throws(Failure) {
        try send(bytes: packet.bytes)
    }

    private mutating func send(bytes: [UInt8]) throws(Failure) {
        try stream.write(bytes, within: patience, until: stop)
        sentAt = clock.now()
    }

    // MARK: Receiving

    /// Waits for an event until `deadline` (nil: for ever); returns nil then, and when `stop` or
    /// one of the descriptors `wakeups` is readable.
    ///
    /// `isReading`: false leaves what arrives in the socket, and only keeps the connection alive.
    package mutating func receive(
        until deadline: BootInstant? = nil,
        waking wakeups: [Int32] = [],
        isReading: Bool = true
    ) throws(Failure) -> MQTTEvent? {
        while true {
            if isReading, let event = try nextEvent() { return event }
            let now = clock.now()
            let due = try keepAlive(now, isReading: isReading)
            if let deadline, deadline <= now { return nil }
            var entries = [PollEntry(stop.descriptor)] + wakeups.map { PollEntry($0) }
            if isReading { entries.append(PollEntry(stream.descriptor)) }
            let limit = min(due, deadline ?? due)
            _ = stop.wait(for: &entries, timeout: max(.zero, limit - now))
            if entries.prefix(1 + wakeups.count).contains(where: \.isReady) { return nil }
        }
    }

    /// Pings if nothing was sent or received for too long; returns when to look again.
    private mutating func keepAlive(_ now: BootInstant, isReading: Bool) throws(Failure)
        -> BootInstant
    {
        // While answers are not read, none can be missed.
        if !isReading { (pingedAt, receivedAt) = (now, now) }
        // An answer may come behind many messages on a slow link.
        let silentSince = max(pingedAt, receivedAt)
        if isPinging, now - silentSince >= patience { throw silent() }
        if now >= min(sentAt, receivedAt) + silenceLimit {
            receivedAt = now
            try ping()
        }
        let due = min(sentAt, receivedAt) + silenceLimit
        return isPinging && isReading ? min(silentSince + patience, due) : due
    }

    private mutating func nextEvent() throws(Failure) -> MQTTEvent? {
        while let packet = try next() {
            switch packet {
            case .publish(let message): return .message(message)
            case .publishAck(let id):
                if unacknowledged.remove(id) != nil { return .published(id: id) }
            case .subscribeAck(let id, let grants):
                guard let asked = subscribing, asked.id == id, asked.filters.count == grants.count
                else { throw broken("it answers a subscription that was not made (SUBACK)") }
                subscribing = nil
                let pairs = zip(asked.filters, grants)
                return .subscribed(
                    refused: pairs.filter { $1 == 0x80 }.map(\.0),
                    limited: pairs.filter { $1 < asked.qos }.map(\.0)
                )
            case .unsubscribeAck(let id):
                guard unsubscribing == id else {
                    throw broken("it answers a request that was not made (UNSUBACK)")
                }
                unsubscribing = nil
                return .unsubscribed
            case .pingResponse:
                guard isPinging else { break }
                pings -= 1
                if !isPinging { return .answeredPing }
                pingedAt = clock.now()
            default: throw broken("it sends a packet that only a client may send, or CONNACK twice")
            }
        }
        return nil
    }

    /// Returns the next packet that has arrived.
    private mutating func next() throws(Failure) -> MQTTPacket? {
        while true {
            do throws(MQTTError) {
                if let packet = try reader.next() { return packet }
            } catch {
                throw broken("it sends \(error.message)")
            }
            guard let bytes = try stream.read(atMost: Self.step) else { return nil }
            reader.append(bytes)
            receivedAt = clock.now()
        }
    }

    // MARK: Failures

    private func broken(_ what: String) -> Failure {
        Failure(
            "\(server): does not speak MQTT 3.1.1: \(what); check the host and port in mqtt.url",
            code: .server
        )
    }

    private func silent() -> Failure {
        Failure(
            "\(server): no answer for \(patience); check the network and the broker",
            code: .network
        )
    }

    /// Explains a CONNACK with a code other than 0 (section 3.2.2.3).
    private func refused(_ code: UInt8) -> Failure {
        let why =
            switch code {
            case 1: "it does not speak MQTT 3.1.1"
            case 2: "it refuses the client id; check mqtt.client_id"
            case 3: "it is not available; it may be starting"
            case 4: "wrong user name or password; check mqtt.username and mqtt.password_file"
            case 5:
                "this client is not authorised; check mqtt.username, mqtt.password_file and the "
                    + "broker's access list"
            default: "it refuses the connection with the unknown code \(code)"
            }
        return Failure("\(server): \(why)", code: .server)
    }
}
