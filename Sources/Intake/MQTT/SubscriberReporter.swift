// Publishes the state of the MQTT subscriber and reports what it does not store.
package import Host
import MQTT
package import Status

/// The parts of the gateway that a subscriber uses.
package struct SubscriberContext: Sendable {
    let board: GatewayBoard
    let clock: any HostClock
    let environment: [String: String]
    let log: Log
    /// Why nothing may be collected now; nil if it may.
    let whyNot: @Sendable () -> String?

    package init(
        board: GatewayBoard,
        clock: any HostClock,
        environment: [String: String],
        log: Log,
        whyNot: @escaping @Sendable () -> String?
    ) {
        (self.board, self.clock, self.environment) = (board, clock, environment)
        (self.log, self.whyNot) = (log, whyNot)
    }
}

/// Keeps the status board, the error list and the log up to date; used by the subscriber's thread.
final class SubscriberReporter {
    private let context: SubscriberContext
    private var figures: StatusReport.MessagesIn {
        didSet { context.board.messagesIn.update { [figures] in $0 = figures } }
    }
    /// Refused messages that no line reports yet, and when the last line was written.
    private var unreported = 0
    private var reportedAt: BootInstant?
    private var lastFailure: Failure?
    /// A message of this connection was reported as possibly stored twice.
    private var hasReportedTwice = false

    /// Refused messages are reported at most this often.
    private static let reportPause = Duration.seconds(60)

    private let client: String

    init(_ context: SubscriberContext, broker: String, client: String) {
        (self.context, self.client) = (context, client)
        // The counts go on from those of the subscriber before it, which had other settings.
        figures = context.board.messagesIn.value ?? StatusReport.MessagesIn(broker: broker)
        (figures.broker, figures.state, figures.waiting) = (broker, .connecting, 0)
        figures.excesses = nil
        (figures.reason, figures.code) = (nil, nil)
        context.board.messagesIn.update { [figures] in $0 = figures }
    }

    // MARK: The connection

    func waits(_ why: String) {
        (figures.state, figures.reason, figures.code) = (.waiting, nil, nil)
    }

    /// An error stays visible until the next connection works.
    func connects() {
        if figures.state != .error { figures.state = .connecting }
    }

    func connected() {
        (figures.state, figures.reason, figures.code) = (.connected, nil, nil)
        hasReportedTwice = false
        context.log.info("mqtt in", ["connected to": figures.broker])
    }

    /// The connection worked for a while, so its end is news.
    func worked() { lastFailure = nil }

    /// `isTakenOver`: several connections in a row ended soon after the broker accepted them.
    func failed(_ failure: Failure, isTakenOver: Bool = false) {
        let hint =
            "; another client may use the client id \(client): check mqtt.client_id and device_id"
        let failure =
            isTakenOver ? Failure(failure.message + hint, code: failure.code) : failure
        (figures.state, figures.reason, figures.code) = (.error, failure.message, failure.code)
        figures.waiting = 0
        // One line per outage, not per attempt.
        guard lastFailure != failure else { return }
        lastFailure = failure
        context.log.error("mqtt in", ["why": failure.description])
        add(failure.message, failure.code)
    }

    func ends() { figures.waiting = 0 }

    /// Reports filters that the broker does not allow, or only in part; the others work.
    func subscribed(refused: [String], limited: [String]) {
        let filters = refused.isEmpty ? limited : refused
        guard !filters.isEmpty else { return (figures.reason, figures.code) = (nil, nil) }
        let shown = filters.prefix(5).map { printable($0) }.joined(separator: ", ")
        let message =
            refused.isEmpty
            ? "\(figures.broker) grants only QoS 0 for \(shown): messages are lost while the gateway "
                + "is away; check its limits (mosquitto: max_qos)"
            : "\(figures.broker) refuses the subscription to \(shown); check its access list for "
                + "mqtt.username and mqtt.client_id"
        (figures.reason, figures.code) = (message, .server)
        context.log.error("mqtt in", ["why": message])
        add(message, .server)
    }

    func lostSession() {
        warn(
            "\(figures.broker) has lost the session of this gateway: messages published while it "
                + "was away may be missing, and one that it had not seen acknowledged comes twice"
        )
    }

    func unknownSession() {
        warn(
            "\(figures.broker) has a session that this database does not know: messages stored "
                + "before may come twice"
        )
    }

    private func warn(_ message: String) {
        context.log.warning("mqtt in", ["why": message])
        add(message, nil)
    }

    private func add(_ message: String, _ code: ErrorCode?) {
        context.board.errors.add(
            Failure("mqtt in: \(message)", code: code),
            at: context.clock.now()
        )
    }

    // MARK: Messages

    func waiting(_ count: Int) {
        if figures.waiting != count { figures.waiting = count }
    }

    func stored(_ count: Int, waiting: Int) {
        var new = figures
        new.messages += count
        new.waiting = waiting
        figures = new
    }

    func redelivered() { figures.redelivered += 1 }

    func skippedRetained() { figures.retained += 1 }

    func skippedOwn() { figures.own += 1 }

    func exceeding(_ excesses: [String: WallTime]?) {
        if figures.excesses != excesses { figures.excesses = excesses }
    }

    func possiblyTwice() {
        figures.possiblyTwice += 1
        guard !hasReportedTwice else { return }
        hasReportedTwice = true
        warn(
            "messages are possibly stored twice: \(figures.broker) sends again what it does not know "
                + "acknowledged, without DUP or under another packet id"
        )
    }

    func lost(_ count: Int) {
        figures.lost += count
        warn("messages of QoS 0 were lost, because the queue did not store them")
    }

    /// Reports a message that is acknowledged and not stored.
    func refused(_ message: MQTTMessage, _ why: String) {
        figures.refused += 1
        unreported += 1
        let now = context.clock.now()
        if let reportedAt, now - reportedAt < Self.reportPause { return }
        let others = unreported > 1 ? " (and \(unreported - 1) others)" : ""
        let topic = printable(message.topic)
        (unreported, reportedAt) = (0, now)
        context.log.warning("mqtt in", ["refused": topic, "why": why + others])
        add("a message was not stored: \(why)", nil)
    }
}
