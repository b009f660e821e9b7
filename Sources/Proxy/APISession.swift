// The protocol of one client, from the bytes that it sends to those that it gets.
import Host
package import Records

/// The facts about the gateway that a session's answers contain, asked for when they are needed.
package struct ProxyFacts: Sendable {
    var identity: ProxyIdentity
    /// The 32 bytes that a client must know.
    var key: [UInt8]
    var adapter: @Sendable () -> BluetoothAddress?
    var scanner: @Sendable () -> ScannerState

    /// `adapter` and `scanner` are called on the proxy's thread.
    package init(
        _ identity: ProxyIdentity,
        key: [UInt8],
        adapter: @escaping @Sendable () -> BluetoothAddress?,
        scanner: @escaping @Sendable () -> ScannerState
    ) {
        (self.identity, self.key) = (identity, key)
        (self.adapter, self.scanner) = (adapter, scanner)
    }
}

/// One session of ESPHome's native API with encryption; owns no socket, and never blocks.
///
/// A frame is the indicator 1, a length of two bytes and that many bytes. The client's first frame
/// is a greeting; the second one is its Noise message; all others are encrypted messages: type and
/// length of two bytes each, and a Protocol Buffers body.
final class APISession {
    enum Stage {
        case greeting
        case handshake
        /// The client seems to have the key, and waits for another one's place.
        case waiting
        /// The client has the key; its first message must be Hello.
        case introduction
        case ready
        /// The rest of `outgoing` is sent, and then the connection ends.
        case leaving
    }

    /// The length limit of a frame before and after the handshake: no message to a Bluetooth proxy
    /// is longer.
    static let handshakeLimit = 128
    static let frameLimit = 8192
    /// The most advertisements in a message, as ESPHome sends them.
    static let batch = 16

    private(set) var stage = Stage.greeting
    /// Bytes to send; the owner removes those that it has sent.
    var outgoing: [UInt8] = []
    private(set) var isSubscribed = false
    /// Why the session ended, if that was a fault.
    private(set) var fault: String?
    /// The client's own name, `Home Assistant 2025.4.4`.
    private(set) var clientName = ""

    private let facts: ProxyFacts
    /// Whether there is room for one more client that has the key.
    private let hasRoom: () -> Bool
    private var input: [UInt8] = []
    private var handshake: NoiseHandshake?
    private var ciphers: (receiving: NoiseCipher, sending: NoiseCipher)?
    private var reportedScanner: ScannerState?

    init(_ facts: ProxyFacts, hasRoom: @escaping () -> Bool) {
        (self.facts, self.hasRoom) = (facts, hasRoom)
    }

    /// True after its Hello: the client has the key.
    ///
    /// Not already after the handshake, whose first message may be a recorded one.
    var isTrusted: Bool { stage == .ready }

    // MARK: Receiving

    /// Handles received bytes, as soon as they are whole frames.
    func receive(_ bytes: some Collection<UInt8>) {
        input += bytes
        var used = 0
        while stage != .leaving, let frame = nextFrame(input[used...]) {
            used = frame.endIndex
            handle(frame)
        }
        input.removeFirst(stage == .leaving ? input.count : used)
    }

    /// Returns the first frame's content; nil if it is not complete or not a frame.
    private func nextFrame(_ rest: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let indicator = rest.first else { return nil }
        guard indicator == 1 else {
            // An ESPHome device answers so, and a client without a key shows that it needs one.
            let what = indicator == 0 ? "without encryption" : "with unknown bytes"
            refuse("Bad indicator byte", "a client connected \(what)")
            return nil
        }
        guard rest.count >= 3 else { return nil }
        let start = rest.startIndex
        let length = Int(rest[start + 1]) << 8 | Int(rest[start + 2])
        if length > (ciphers == nil ? Self.handshakeLimit : Self.frameLimit) {
            refuse("Bad handshake packet len", "a frame of \(length) bytes")
            return nil
        }
        guard rest.count >= 3 + length else { return nil }
        return rest[(start + 3)..<(start + 3 + length)]
    }

    private func handle(_ frame: ArraySlice<UInt8>) {
        switch stage {
        case .greeting: greet(frame)
        case .handshake: shakeHands(frame)
        case .introduction, .ready: open(frame)
        case .waiting: end("a message before the answer to a handshake")
        case .leaving: break
        }
    }

    private func greet(_ frame: ArraySlice<UInt8>) {
        let length = bigEndian(UInt16(frame.count))
        handshake = NoiseHandshake(
            key: facts.key,
            prologue: Array("NoiseAPIInit".utf8) + length + frame
        )
        let identity = facts.identity
        send(frame: [1] + identity.name.utf8 + [0] + identity.macDigits.utf8 + [0])
        stage = .handshake
    }

    private func shakeHands(_ frame: ArraySlice<UInt8>) {
        guard frame.first == 0 else {
            return refuse("Bad handshake error byte", "an invalid handshake")
        }
        guard handshake?.read(frame.dropFirst()) != nil else {
            // The very words by which a client knows that its key is wrong.
            return refuse("Handshake MAC failure", "a client with another key")
        }
        stage = .waiting
        if hasRoom() { finishHandshake() }
    }

    /// Ends a handshake that waited for room.
    func refuseForRoom() { refuse("Too many clients", "one client too many") }

    /// Answers the handshake, once there is room for the client.
    func finishHandshake() {
        guard let (message, receiving, sending) = handshake?.answer() else {
            return refuse("Handshake error", "an invalid key in a handshake")
        }
        handshake = nil
        ciphers = (receiving, sending)
        send(frame: [0] + message)
        stage = .introduction
    }

    private func open(_ frame: ArraySlice<UInt8>) {
        guard let plain = ciphers?.receiving.open(frame) else {
            return end("a message that cannot be decrypted")
        }
        guard plain.count >= 4 else { return end("a message without a type") }
        let type = UInt16(plain[0]) << 8 | UInt16(plain[1])
        let length = Int(plain[2]) << 8 | Int(plain[3])
        guard length <= plain.count - 4 else { return end("a message shorter than it says") }
        // Padding may follow.
        handle(type, plain[4..<(4 + length)])
    }

    /// Handles a decrypted message.
    ///
    /// States, logs, services and all else that a device without entities has none of need no
    /// answer.
    func handle(_ type: UInt16, _ body: ArraySlice<UInt8>) {
        switch type {
        case MessageType.hello: introduce(body)
        case MessageType.disconnect:
            send(MessageType.disconnectAnswer)
            stage = .leaving
        case MessageType.disconnectAnswer: stage = .leaving
        case MessageType.ping: send(MessageType.pingAnswer)
        case MessageType.pingAnswer: break
        case _ where stage != .ready: end("a request before Hello")
        case MessageType.connect: send(MessageType.connectAnswer)
        case MessageType.deviceInfo:
            send(
                MessageType.deviceInfoAnswer,
                APIMessage.deviceInfo(facts.identity, adapter: facts.adapter())
            )
        case MessageType.listEntities: send(MessageType.entitiesDone)
        case MessageType.time: send(MessageType.timeAnswer)
        case MessageType.subscribeAdvertisements:
            isSubscribed = true
            reportScanner()
        case MessageType.unsubscribeAdvertisements: isSubscribed = false
        // The gateway's configuration decides how it scans.
        case MessageType.setScannerMode: reportScanner()
        case MessageType.deviceRequest:
            guard let answer = APIMessage.notConnected(body) else {
                return end("a message that is not Protocol Buffers")
            }
            send(MessageType.deviceConnection, answer)
        // Both empty: no connections, no new key.
        case MessageType.subscribeConnections: send(MessageType.connectionsFree)
        case MessageType.setKey: send(MessageType.setKeyAnswer)
        default: break
        }
    }

    private func introduce(_ body: ArraySlice<UInt8>) {
        guard stage == .ready || hasRoom() else { return end("one client too many") }
        var reader = ProtobufReader(body)
        do throws(ProtobufReader.MalformedError) {
            while let (field, value) = try reader.next() {
                guard case .bytes(let text) = value, field == 1 else { continue }
                clientName = printable(String(decoding: text.prefix(64), as: UTF8.self))
            }
        } catch {
            return end("a message that is not Protocol Buffers")
        }
        send(MessageType.helloAnswer, APIMessage.hello(facts.identity))
        stage = .ready
    }

    /// Returns the fault once.
    func takeFault() -> String? {
        defer { fault = nil }
        return fault
    }

    // MARK: Sending

    /// Sends the scanner's state if it has changed since it was last sent.
    func updateScanner() {
        if isSubscribed, reportedScanner != facts.scanner() { reportScanner() }
    }

    private func reportScanner() {
        let state = facts.scanner()
        reportedScanner = state
        send(MessageType.scannerState, APIMessage.scannerState(state))
    }

    /// Sends at most `batch` advertisements in one message.
    func send(_ advertisements: [RawAdvertisement]) {
        let body = APIMessage.advertisements(advertisements)
        mustHold(body.count < 60_000, "a message's length fits into two bytes")
        send(MessageType.rawAdvertisements, body)
    }

    /// Asks the client for an answer.
    func ping() { send(MessageType.ping) }

    /// Tells the client that the gateway ends the session; it may still send what is on its way.
    func sayGoodbye() {
        if isTrusted { send(MessageType.disconnect) }
        stage = .leaving
    }

    private func send(_ type: UInt16, _ body: [UInt8] = []) {
        let header = bigEndian(type) + bigEndian(UInt16(truncatingIfNeeded: body.count))
        guard let sealed = ciphers?.sending.seal(header + body) else { return }
        send(frame: sealed)
    }

    private func send(frame: [UInt8]) {
        outgoing += [1] + bigEndian(UInt16(truncatingIfNeeded: frame.count)) + frame
    }

    /// Ends a session before or in its handshake, with the reason for the client.
    private func refuse(_ reason: String, _ fault: String) {
        if ciphers == nil {
            // A client that has not been greeted takes the first frame for the greeting.
            send(frame: [1] + reason.utf8)
        }
        end(fault)
    }

    private func end(_ fault: String) {
        self.fault = fault
        stage = .leaving
    }
}
