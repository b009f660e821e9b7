// Fuzz targets for brokers at the other end of a real connection.
import FuzzSupport
import HTTP
import Host
import Records
import Setup
import Status
import Support

@testable import Intake
@testable import MQTT

enum BrokerTargets {
    static let all = [
        FuzzTarget(name: "mqtt-connection", run: connection),
        FuzzTarget(name: "message-session", run: session),
    ]

    /// Returns the messages in a broker's bytes, as far as they are valid packets.
    private static func messages(in bytes: [UInt8]) -> [MQTTMessage] {
        var reader = MQTTReader(payloadLimit: limit)
        reader.append(bytes)
        var messages: [MQTTMessage] = []
        while let packet = try? reader.next() {
            if case .publish(let message) = packet { messages.append(message) }
        }
        return messages
    }

    private static let limit = 64

    // MARK: MQTTConnection

    /// Checks that any bytes of a broker give its messages in order, at most one answer per request,
    /// and one acknowledgement per message, until an error that a person can read.
    private static func connection(_ input: [UInt8]) {
        var events: [MQTTEvent] = []
        let received = try? withBroker([BrokerScript(bytes: input)]) { port in
            do throws(Failure) {
                try exchange(port, &events)
            } catch {
                precondition((1...1000).contains(error.message.utf8.count))
            }
        }
        let found = events.compactMap { event in
            if case .message(let message) = event { message } else { nil }
        }
        precondition(found == Array(messages(in: input).prefix(found.count)))
        // To a publication, a subscription, its end and a ping.
        precondition(events.count - found.count <= 4)
        let acknowledged = acknowledgements(in: received?.first ?? [])
        precondition(acknowledged == found.filter { $0.qos > 0 }.map(\.id))
    }

    /// Makes one request of each kind, and acknowledges messages until the broker ends the connection.
    private static func exchange(_ port: UInt16, _ events: inout [MQTTEvent]) throws(Failure) {
        guard let endpoint = try? Endpoint.parse("mqtt://127.0.0.1:\(port)", .mqtt).get(),
            let stop = try? StopSignal()
        else { fatalError("no endpoint") }
        var connection = try MQTTConnection.connect(
            to: endpoint,
            caFile: nil,
            MQTTConnect(clientID: "fuzz", isClean: false),
            payloadLimit: limit,
            until: stop
        )
        try connection.subscribe(["tele/#"])
        try connection.publish("a", [1], qos: 1)
        try connection.unsubscribe(["b"])
        try connection.ping()
        while let event = try connection.receive() {
            events.append(event)
            guard case .message(let message) = event, message.qos > 0 else { continue }
            try connection.acknowledge([message.id])
        }
    }

    // MARK: MessageSession

    /// Stores records and memos in memory, but no batch with an exclamation mark in it.
    private final class MemorySink: MessageSink {
        let memos = Locked([String: String]())
        /// Small, so that batches become full.
        let putBytes = 256

        func refusal(of stream: String) -> String? { nil }

        func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
            put(records, memos: [:], done: done)
        }

        func put(
            _ records: [UserRecord],
            memos new: [String: String],
            done: @escaping @Sendable ((any Error)?) -> Void
        ) {
            let isRefused = records.contains { $0.members.contains(UInt8(ascii: "!")) }
            if !isRefused { memos.update { $0.merge(new) { $1 } } }
            done(isRefused ? Failure("refused") : nil)
        }

        func remember(_ name: String, _ text: String) { memos.update { $0[name] = text } }

        func remembered(_ name: String) -> String? { memos.value[name] }
    }

    /// Checks that each acknowledgement is for a message that was stored or counted, at most one per
    /// message, and that the stored session names no other messages.
    ///
    /// Each CONNACK in the input begins another connection of the same session, three at most.
    private static func session(_ input: [UInt8]) {
        let (sink, scripts) = (MemorySink(), connections(input))
        var reports: [StatusReport.MessagesIn?] = []
        var stored: MessageSession?
        let received = try? withBroker(scripts) { port in
            let settings = settings(port)
            for stop in scripts.compactMap(\.stop) {
                reports.append(subscribe(settings, sink, stop))
            }
            var session = MessageSession(name: "\(settings.endpoint.server) \(settings.clientID)")
            if session.restore(sink.remembered) { stored = session }
        }
        guard let received, received.count == scripts.count else { fatalError("no connection") }
        var all: Set<UInt16> = []
        for (index, script) in scripts.enumerated() {
            let ids = messages(in: script.bytes).filter { $0.qos > 0 }.map(\.id)
            check(acknowledgements(in: received[index]), for: ids, reports[index])
            all.formUnion(ids)
        }
        precondition(stored?.count ?? 0 <= all.count)
    }

    private static func check(
        _ acknowledged: [UInt16],
        for ids: [UInt16],
        _ report: StatusReport.MessagesIn?
    ) {
        for id in Set(acknowledged) {
            precondition(acknowledged.count { $0 == id } <= ids.count { $0 == id })
        }
        let counts = report.map {
            $0.messages + $0.refused + $0.redelivered + $0.retained + $0.own
        }
        precondition(acknowledged.count <= counts ?? 0)
    }

    private static func connections(_ input: [UInt8]) -> [BrokerScript] {
        var connections: [[UInt8]] = [[]]
        for (index, byte) in input.enumerated() {
            let isConnectAck = byte == 0x20 && input[index...].starts(with: [0x20, 2])
            if isConnectAck, index > 0, connections.count < 3 { connections.append([]) }
            connections[connections.count - 1].append(byte)
        }
        return connections.map { BrokerScript(bytes: $0, stop: try? StopSignal()) }
    }

    private static func settings(_ port: UInt16) -> SubscriberSettings {
        var configuration = Configuration()
        configuration.mqtt.url = "mqtt://127.0.0.1:\(port)"
        var stream = UserStream(name: "a")
        (stream.topics, stream.maxRate, stream.maxRecordBytes) = (["tele/#"], 1, limit)
        configuration.userStreams = [stream]
        guard let settings = SubscriberSettings(configuration, deviceID: "fuzz") else {
            fatalError("a stream without a topic filter")
        }
        return settings
    }

    /// Receives messages until `stop` is raised; returns the counts.
    private static func subscribe(
        _ settings: SubscriberSettings,
        _ sink: MemorySink,
        _ stop: StopSignal
    ) -> StatusReport.MessagesIn? {
        guard let wakeup = try? Wakeup() else { return nil }
        let context = SubscriberContext(
            board: GatewayBoard(),
            clock: SystemClock(),
            environment: [:],
            log: Log(level: .error),
            whyNot: { nil }
        )
        MessageSubscriber(settings, sink, context, wakeup: wakeup, stop: stop).run()
        return context.board.messagesIn.value
    }
}
