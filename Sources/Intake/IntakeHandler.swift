// Handles the lines of the intake socket's programs.
import Host
import Records
import Setup

/// Collects the records of all programs in batches, and answers their lines; used only by the
/// socket's thread.
///
/// One batch is written at a time; lines that arrive until it is committed form the next one. So a
/// slow disk makes larger batches, and many programs cost no more commits than one.
final class IntakeHandler: LineHandler {
    /// The most records in a batch.
    ///
    /// At this or the sink's byte limit, nothing is read until the batch before is committed.
    private static let batchLimit = 4096
    /// The shortest delay for `max_rate`, so that one commit holds several delayed records.
    private static let shortestDelay = Duration.milliseconds(100)

    /// The line that a record came from.
    private struct Owner {
        var client: LineConnection
        var line: Int
    }

    var clients: [LineConnection] = [] {
        didSet { server.figures.update { [count = clients.count] in $0.clients = count } }
    }
    let deadline: BootInstant? = nil
    private let server: IntakeServer
    private var streams: IntakeStreams
    private var records: [UserRecord] = []
    private var recordBytes = 0
    private var owners: [Owner] = []
    /// The lines of the batch that is being written.
    private var travelling: [Owner]?
    private var batch = 0

    init(_ server: IntakeServer, _ streams: [UserStream]) {
        self.server = server
        self.streams = IntakeStreams(streams, now: server.clock.now())
    }

    var longestLine: Int { streams.longestLine }

    var hasRoom: Bool {
        records.count < Self.batchLimit && recordBytes < server.sink.putBytes
    }

    var isBusy: Bool { travelling != nil }

    func refusal(beside count: Int) -> [UInt8] { IntakeError.full(count).answer }

    /// Sets the streams that are accepted from now on; delayed lines are tried again.
    func declare(_ declared: [UserStream]) {
        streams.declare(declared, now: server.clock.now())
        for client in clients { client.resume() }
    }

    func handle(_ line: LineBuffer.Line, _ number: Int, of client: LineConnection) {
        do throws(IntakeError) {
            guard case .whole(let bytes) = line else { throw streams.tooLong }
            if bytes.count < 64, bytes.filter({ $0 > 32 }) == IntakeLine.waitForRate {
                client.acceptsDelay = true
                return client.answer(number, IntakeLine.waits)
            }
            let record = try streams.record(of: bytes, server.clock)
            // Checked per record here, because a batch is stored or refused as a whole.
            if let why = server.sink.refusal(of: record.stream) {
                throw IntakeError("not kept: \(why)")
            }
            recordBytes += record.members.count
            records.append(record)
            owners.append(Owner(client: client, line: number))
        } catch {
            if let delay = error.retryAfter, client.acceptsDelay {
                let until = server.clock.now() + max(delay, Self.shortestDelay)
                return client.delay(line, number, until: until)
            }
            server.figures.update { $0.refused += 1 }
            client.answer(number, error.answer)
        }
    }

    // MARK: The disk

    /// Gives the collected records to the sink, unless a batch is being written.
    func endTurn(_ now: BootInstant) {
        guard travelling == nil, !records.isEmpty else { return }
        mustHold(records.count == owners.count, "each record of a batch has its line")
        batch += 1
        travelling = owners
        let records = records
        (self.records, owners, recordBytes) = ([], [], 0)
        server.sink.put(records) { [batch, lines = server.lines] error in
            let refusal = error.map { IntakeError(notKept: $0) }
            lines.post { $0.settle(batch, refusal) }
        }
    }

    /// Answers the lines of a batch that was committed, or refused.
    private func settle(_ number: Int, _ refusal: IntakeError?) {
        guard number == batch, let owners = travelling else { return }
        travelling = nil
        server.figures.update { [count = owners.count, isKept = refusal == nil] in
            if isKept { $0.accepted += count } else { $0.refused += count }
        }
        let answer = refusal?.answer ?? IntakeLine.accepted
        for owner in owners { owner.client.answer(owner.line, answer) }
    }

    /// Refuses pending records, and tells each `waypost put` that later lines were not read.
    func stop() {
        guard travelling == nil else { return }
        let answer = IntakeError.stopping.answer
        for owner in owners { owner.client.answer(owner.line, answer) }
        for client in clients where client.acceptsDelay {
            client.answerDelayed(answer)
            client.say(answer)
        }
    }
}
