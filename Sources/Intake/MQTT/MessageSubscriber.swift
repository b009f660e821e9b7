// Subscribes to the topics of the declared streams, and acknowledges messages once they are stored.
import Host
import HTTP
import MQTT
import Queue
import Records
import Setup
import Status

/// Receives messages in a persistent session; used by one thread, but for `wakeup`.
///
/// One batch is written at a time; messages that arrive until it is committed form the next one.
/// They are acknowledged after their commit, in their order. While the batch is full nothing is
/// read, so messages wait at the broker. A message beyond its stream's `max_rate` is refused and
/// acknowledged at once: a broker leaves few unacknowledged, so held ones would stop all streams.
final class MessageSubscriber {
    private let settings: SubscriberSettings
    let sink: any MessageSink
    private let context: SubscriberContext
    private let report: SubscriberReporter
    private let wakeup: Wakeup
    private let stop: StopSignal
    private var streams: MessageStreams
    var session: MessageSession
    var batch = MessageBatch()
    /// The batch that is being written.
    var travelling: MessageBatch?
    private let outcome = StateBox<Outcome?>(nil)
    var backlog = BrokerBacklog(isResumed: false)
    private var retained = RetainedMessages()
    /// Messages read since the batch was begun.
    private var readCount = 0
    /// The database does not know the session that the broker has.
    private var isUnknown = false
    /// When the broker accepted the present connection, and whether it sent anything since.
    private var connection = (since: BootInstant?.none, wasHeard: false)

    private enum Outcome: Sendable {
        case stored
        case refused(String)
    }

    /// How long an outage of the queue, or a wait for the enrolment, lasts before the next look.
    private static let pauses = (queue: Duration.seconds(1), enrolment: Duration.seconds(60))
    /// A connection that lasted so long has worked.
    private static let steady = Duration.seconds(60)
    /// Time after which refused filters are tried again.
    private static let refusedPause = Duration.seconds(300)
    /// How long a stop waits for the batch that is being written.
    private static let stopPatience = Duration.milliseconds(700)

    init(
        _ settings: SubscriberSettings,
        _ sink: any MessageSink,
        _ context: SubscriberContext,
        wakeup: Wakeup,
        stop: StopSignal
    ) {
        (self.settings, self.sink, self.context) = (settings, sink, context)
        (self.wakeup, self.stop) = (wakeup, stop)
        let server = settings.endpoint.server
        report = SubscriberReporter(context, broker: server, client: settings.clientID)
        streams = MessageStreams(settings.streams, now: context.clock.now())
        session = MessageSession(name: "\(server) \(settings.clientID)")
    }

    /// Reads the stored session, once the queue has dealt with every batch given to it before.
    ///
    /// A subscriber with other settings may have been stopped while its last batch was being
    /// written; without the ids of that batch its messages would be stored twice.
    private func readSession() {
        repeat {
            put(MessageBatch(), [:])
            do throws(Failure) {
                try awaitOutcome()
                break
            } catch {
                report.failed(error)
            }
        } while !rest(for: Self.pauses.queue)
        guard !stop.isRaised else { return }
        isUnknown = !session.restore(sink.remembered)
    }

    /// Connects again and again until `stop` is raised.
    func run() {
        readSession()
        var retry = Retry([1, 2, 4, 8, 16, 32, 60].map { .seconds($0) })
        // Connections in a row that the broker accepted and that ended soon.
        var brief = 0
        while !stop.isRaised {
            if let why = context.whyNot() {
                report.waits(why)
                if rest(for: Self.pauses.enrolment) { break }
                continue
            }
            connection = (nil, false)
            do throws(Failure) {
                report.connects()
                try serve()
            } catch {
                if stop.isRaised { break }
                brief = connection.since == nil ? 0 : brief + 1
                if isSteady {
                    brief = 0
                    retry.succeeded()
                    report.worked()
                }
                report.failed(error, isTakenOver: brief >= 3)
            }
            if rest(for: retry.next()) { break }
        }
        report.ends()
    }

    private var isSteady: Bool {
        connection.since.map { SystemClock().now() - $0 >= Self.steady } ?? false
    }

    /// Sleeps until it is time, or `whyNot` may have changed; returns true once stopped.
    private func rest(for pause: Duration) -> Bool {
        let deadline = SystemClock().now() + pause
        let isWaiting = context.whyNot() != nil
        while !stop.isRaised, case let left = deadline - SystemClock().now(), left > .zero {
            var entries = [PollEntry(stop.descriptor), PollEntry(wakeup.descriptor)]
            _ = stop.wait(for: &entries, timeout: left)
            wakeup.clear()
            if isWaiting, context.whyNot() == nil { break }
        }
        return stop.isRaised
    }

    // MARK: A connection

    private func serve() throws(Failure) {
        let connect = MQTTConnect(
            clientID: settings.clientID,
            isClean: false,
            username: settings.broker.username,
            password: try settings.broker.password(context.environment)
        )
        var connection = try MQTTConnection.connect(
            to: settings.endpoint,
            caFile: settings.broker.caFile,
            connect,
            payloadLimit: streams.payloadLimit,
            until: stop
        )
        var failure: Failure?
        do throws(Failure) {
            try resume(&connection)
            while !stop.isRaised { try turn(&connection) }
        } catch {
            failure = error
        }
        finish(&connection, after: failure)
        session.disconnected(wasHeard: self.connection.wasHeard)
        if let failure { throw failure }
        connection.disconnect()
    }

    /// Compares the broker's session with the stored one, and subscribes.
    private func resume(_ connection: inout MQTTConnection) throws(Failure) {
        if !connection.isResumed {
            if !session.isEmpty {
                report.lostSession()
                session.reset()
                // Before its first message: an id of the old session must not stand for one of this.
                try store(MessageBatch())
                try awaitOutcome()
            }
        } else if isUnknown {
            report.unknownSession()
        }
        isUnknown = false
        backlog = BrokerBacklog(isResumed: connection.isResumed)
        session.resumed()
        let old = session.filters.filter { !streams.filters.contains($0) }
        session.filters = old + streams.filters
        rememberSession()
        if !old.isEmpty { try connection.unsubscribe(old) }
        // Each time, also in a session of before: the broker may have made that one for a connection
        // whose answer was lost, and would send nothing.
        retained.subscribing()
        try connection.subscribe(streams.filters)
        try ping(&connection)
        self.connection.since = SystemClock().now()
        report.connected()
    }

    private func turn(_ connection: inout MQTTConnection) throws(Failure) {
        // Messages may come without a pause in which the thread would wait.
        stop.life.returns()
        try settle(&connection)
        let isFull =
            max(batch.ids.count, batch.records.count) >= MessageBatch.limit
            || batch.bytes >= min(MessageBatch.byteLimit, sink.putBytes)
        // First everything that has arrived, because a commit costs the same for one and for many;
        // but messages that are refused must not delay the others for ever.
        let isDue = travelling == nil && !batch.isEmpty
        if isDue, isFull || readCount >= MessageBatch.limit { return try give(&connection) }
        let event = try connection.receive(
            until: isDue ? context.clock.now() : nextTurn(),
            waking: [wakeup.descriptor],
            isReading: !isFull
        )
        if event != nil { self.connection.wasHeard = true }
        switch event {
        case .message(let message):
            guard let id = handle(message) else { break }
            try connection.acknowledge([id])
            backlog.acknowledged(1)
        case .subscribed(let refused, let limited): subscribed(refused, limited)
        case .answeredPing: try answered(&connection)
        case .unsubscribed:
            session.filters = streams.filters
            rememberSession()
        case .published: break
        case nil:
            wakeup.clear()
            if isDue { try give(&connection) }
            try retryRefused(&connection)
        }
    }

    /// Gives the collected batch to the queue; acknowledges one that has nothing to store.
    private func give(_ connection: inout MQTTConnection) throws(Failure) {
        let batch = take()
        if batch.records.isEmpty { return try acknowledge(batch.ids, &connection) }
        try store(batch)
    }

    private func take() -> MessageBatch {
        defer { (batch, readCount) = (MessageBatch(), 0) }
        return batch
    }

    /// Reports the streams that get too much; returns when to do so again, or something else.
    private func nextTurn() -> BootInstant? {
        let now = context.clock.now()
        let excesses = streams.excesses(at: now)
        report.exceeding(excesses)
        return [retryRefusedAt, excesses.map { _ in now + .seconds(1) }].compactMap { $0 }.min()
    }

    // MARK: Subscriptions

    /// The filters that the broker has refused, and when to ask again.
    private var refused: [String] = []
    private var retryRefusedAt: BootInstant?

    private func subscribed(_ refused: [String], _ limited: [String]) {
        retained.subscribed(at: context.clock.now())
        self.refused = refused
        retryRefusedAt = refused.isEmpty ? nil : context.clock.now() + Self.refusedPause
        report.subscribed(refused: refused, limited: limited)
    }

    private func retryRefused(_ connection: inout MQTTConnection) throws(Failure) {
        guard let at = retryRefusedAt, at <= context.clock.now() else { return }
        retryRefusedAt = nil
        retained.subscribing()
        try connection.subscribe(refused)
    }

    // MARK: Messages

    /// Adds a message to the batch; returns its id if it is to be acknowledged at once instead.
    private func handle(_ message: MQTTMessage) -> UInt16? {
        let stamp = context.clock.stamp()
        readCount += 1
        if message.qos > 0 { backlog.received() }
        if settings.published.contains(message.topic) {
            report.skippedOwn()
        } else if retained.isOld(message, at: stamp.boot) {
            report.skippedRetained()
        } else if message.qos > 0, session.recognises(message) {
            report.redelivered()
        } else {
            return store(message, at: stamp)
        }
        batch.add(message)
        return nil
    }

    private func store(_ message: MQTTMessage, at stamp: Stamp) -> UInt16? {
        let hasWaited = backlog.isOpen && message.qos > 0
        do throws(IntakeError) {
            batch.add(message, try streams.record(of: message, at: stamp, hasWaited: hasWaited))
        } catch {
            report.refused(message, error.message)
            if error.retryAfter != nil, message.qos > 0 { return message.id }
            batch.add(message)
            return nil
        }
        if message.qos > 0 {
            if session.mayBeEarlier(message) { report.possiblyTwice() }
            session.receive(message)
        }
        report.waiting((travelling?.records.count ?? 0) + batch.records.count)
        return nil
    }

    // MARK: The disk

    /// Gives a batch to the queue, with the session as it is once the batch is stored.
    private func store(_ batch: MessageBatch) throws(Failure) {
        let names = Set(batch.records.map(\.stream))
        if let why = context.whyNot() ?? names.firstResult({ self.sink.refusal(of: $0) }) {
            drop(batch)
            throw Failure("messages are not stored: \(why)")
        }
        put(batch, session.takeMemos())
    }

    private func put(_ batch: MessageBatch, _ memos: [String: String]) {
        travelling = batch
        sink.put(batch.records, memos: memos) { [outcome, wakeup] error in
            outcome.update { $0 = error.map { .refused("\($0)") } ?? .stored }
            wakeup.signal()
        }
    }

    /// Handles the outcome of the batch that was being written, if it is known.
    private func settle(_ connection: inout MQTTConnection) throws(Failure) {
        if let batch = try settled() { try acknowledge(batch.ids, &connection) }
    }

    private func acknowledge(_ ids: [UInt16], _ connection: inout MQTTConnection) throws(Failure) {
        guard !ids.isEmpty else { return }
        try connection.acknowledge(ids)
        session.acknowledged(ids)
        backlog.acknowledged(ids.count)
        try ping(&connection)
    }

    /// Returns the batch if it has been stored; throws if it was refused.
    private func settled() throws(Failure) -> MessageBatch? {
        guard let batch = travelling, let outcome = outcome.replace(with: nil) else { return nil }
        travelling = nil
        switch outcome {
        case .stored:
            report.stored(batch.records.count, waiting: self.batch.records.count)
            return batch
        case .refused(let why):
            drop(batch)
            throw Failure("messages are not stored: \(why.plainWords(atMost: 300))")
        }
    }

    /// Gives up records that were not stored; those of QoS 1 wait at the broker.
    private func drop(_ batch: MessageBatch) {
        for id in batch.recordIDs { session.forget(id) }
        session.notStored()
        let lost = batch.records.count - batch.recordIDs.count
        if lost > 0 { report.lost(lost) }
    }

    private func awaitOutcome(within limit: Duration? = nil) throws(Failure) {
        let deadline = limit.map { SystemClock().now() + $0 }
        while travelling != nil {
            if try settled() != nil { return }
            let left = deadline.map { $0 - SystemClock().now() }
            if let left, left <= .zero { return }
            // Also while stopping; a stop that waits has a limit.
            var entries = [PollEntry(wakeup.descriptor)]
            if limit == nil { entries.append(PollEntry(stop.descriptor)) }
            _ = stop.wait(for: &entries, timeout: left)
            wakeup.clear()
            if stop.isRaised, limit == nil { return }
        }
    }

    /// Stores what was received before the connection ended, and acknowledges it if it still can.
    ///
    /// The outcome of a batch must be known before the next connection, which may bring it again.
    private func finish(_ connection: inout MQTTConnection, after failure: Failure?) {
        do throws(Failure) {
            try waitForDisk(&connection, isAlive: failure == nil)
            guard !batch.isEmpty, travelling == nil else { return }
            try store(take())
            try waitForDisk(&connection, isAlive: failure == nil)
        } catch {
            report.failed(error)
            if !batch.isEmpty { drop(take()) }
        }
    }

    /// Waits for the outcome of the batch that is being written.
    private func waitForDisk(_ connection: inout MQTTConnection, isAlive: Bool) throws(Failure) {
        guard let batch = travelling else { return }
        try awaitOutcome(within: stop.isRaised ? Self.stopPatience : nil)
        if isAlive, travelling == nil { try acknowledge(batch.ids, &connection) }
    }
}
