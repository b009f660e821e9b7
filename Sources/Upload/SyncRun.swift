// One sync: each stream's due batches, in turn, until done or refused.
internal import Board
internal import Host
internal import Store

/// The uploader's state between and during syncs; lives on its thread.
final class SyncRun {
    let settings: UploadSettings
    let queue: Queue
    let clock: any HostClock
    private let board: Publisher<UploadReport>
    let stop: StopSignal
    private let transport: Transport
    /// Set where batches become objects.
    private let bucket: BucketUpload?
    /// nil until the first sync: the disk may refuse at the start.
    private var openReader: Reader?
    /// The database that the reader is of.
    private var epoch = -1
    private var report = UploadReport()
    private var pacing: Pacing
    private var rate: RateLimit
    /// Requests this sync may still make; nil for any number.
    private(set) var requestsLeft: Int?
    /// The failure of this sync and how long the server wants to be left alone for it.
    private(set) var failure: (isThere: Bool, after: Duration?) = (false, nil)
    /// The sync before failed, too, and nobody asked for this one.
    private var endsAtFailure = false
    /// The stream that this sync begins with: after a failure the one after it, so that none holds the others up.
    var firstStream = 0
    /// The next request makes a connection of its own and asks DNS again.
    private var wantsFreshConnection = false
    /// When bytes on the wire were last entered.
    private var trafficNotedAt: BootInstant?
    private var compression: CompressionChoice
    /// The body of a batch that is about to be frozen.
    private var draft: BodyDraft?
    var live = LivePass()
    /// Streams whose batch met a failure in this sync: each is tried once.
    private(set) var resting: Set<Stream> = []
    /// When a tick that waits for the clock's first sync has waited long enough.
    private var clockDeadline: BootInstant?

    /// What to do after one batch.
    enum Next {
        /// On with this stream.
        case goOn
        /// This stream rests until the next sync.
        case nextStream
        /// Nothing more goes out in this sync.
        case endSync
    }

    init(
        settings: UploadSettings,
        queue: Queue,
        clock: any HostClock,
        board: Publisher<UploadReport>,
        stop: StopSignal
    ) throws {
        self.settings = settings
        self.queue = queue
        self.clock = clock
        self.board = board
        self.stop = stop
        pacing = Pacing(interval: settings.interval)
        rate = RateLimit(bytesPerSecond: settings.transport.maxRate)
        compression = CompressionChoice(settings.compression)
        transport = try Transport(settings.transport)
        bucket = settings.bucket.map { BucketUpload(settings, $0) }
        for stream in Stream.allCases { report.streams[stream] = StreamUpload() }
    }

    /// Until the next try by itself; nil when only a trigger is waited for.
    var retryDelay: Duration? {
        [pacing.until, clockDeadline].compactMap { $0 }.min().map { max(.zero, $0 - clock.now()) }
    }

    /// Sends everything that was accepted before now; true when nothing of it is left.
    func perform(_ reason: SyncReason) -> Bool {
        clockDeadline = nil
        guard reason == .asked || clockIsGood() else {
            // Not at the next tick of the grid: that could be much later than the patience.
            clockDeadline = BootInstant(nanoseconds: settings.clockPatience.nanoseconds)
            report.phase = .waitingForClock
            publish()
            return false
        }
        endsAtFailure = pacing.isFailing && (reason == .tick || reason == .retry)
        requestsLeft = pacing.begin(reason, at: clock.now())
        guard requestsLeft != 0 else { return false }
        failure = (false, nil)
        if reason == .network { wantsFreshConnection = true }
        resting = []
        report.phase = .uploading
        publish()
        var isDone = true
        do {
            isDone = try sendAll(token: try settings.token())
        } catch {
            // A damaged database is replaced; the next sync reads the new one.
            if (error as? SQLiteError)?.isDamage == true {
                queue.reportDamage("\(error)", epoch: epoch)
            }
            epoch = -1
            fail((error as? Failure) ?? Failure("\(error)"), stream: nil, after: nil)
            isDone = false
        }
        end(isDone: isDone)
        return isDone
    }

    /// What this sync says about the next one.
    private func end(isDone: Bool) {
        let now = clock.now()
        let random = Double.random(in: 0..<1)
        if failure.isThere {
            pacing.failed(at: now, after: failure.after, random: random)
        } else if isDone {
            firstStream = 0
            pacing.succeeded()
        } else if requestsLeft == 0, !stop.isRaised {
            pacing.cut(at: now, random: random)
        }
        // A refused token or address is probed once an interval, by the grid alone.
        if report.phase == .tokenRefused || report.phase == .endpointWrong { pacing.succeeded() }
        if report.phase == .uploading { report.phase = isDone ? .idle : .waiting }
        report.notBefore = pacing.until
        noteTraffic(atOnce: true)
        publish()
    }

    /// Before a boot's first sync of the clock, uploads wait a little for it: better dates are worth it.
    private func clockIsGood() -> Bool {
        if clock.now().nanoseconds >= settings.clockPatience.nanoseconds { return true }
        return (try? queue.perform { $0.clockSyncedThisBoot() }) ?? true
    }

    /// Another database took the place of the one that was read, or reading it failed.
    func reader() throws -> Reader {
        let newest = queue.epoch
        if let openReader, newest == epoch { return openReader }
        let reader = try queue.reader()
        openReader = reader
        epoch = newest
        return reader
    }

    func nextBatch(_ stream: Stream, through end: Int64?) throws -> Batch? {
        if let ready = try queue.perform({ try $0.nextReady(stream) }) { return ready }
        guard let end, var range = try queue.perform({ try $0.pending(stream) }), range.first <= end
        else { return nil }
        range.last = min(range.last, end)
        let frozen = range
        let last = try last(of: range)
        // nil when records of the range had to go meanwhile: look again.
        return try queue.perform { try $0.freeze(frozen, through: last) }
            ?? nextBatch(stream, through: end)
    }

    /// The last record that fits into a batch; a request's body is made on the way.
    private func last(of range: PendingRange) throws -> Int64 {
        guard bucket == nil else {
            return try RecordSource(reader: reader(), clockMap: range.clockMap)
                .lastFitting(range, limit: settings.maxBatchBytes)
        }
        let draft = try BodyDraft(
            range,
            limit: settings.maxBatchBytes,
            envelope: envelope(range.stream),
            compression: compression.current,
            reader: reader()
        )
        self.draft = draft
        return draft.last
    }

    func send(_ batch: Batch, token: String) throws -> Next {
        if stop.sleep(for: rate.delay(at: clock.now())) { return .endSync }
        let request = try bucket.map { try store(batch, in: $0, keys: token) } ?? post(batch, token)
        let now = clock.stamp()
        report.lastAttemptAt = now
        report.streams[batch.stream]?.lastAttemptAt = now
        report.streams[batch.stream]?.inFlight = batch.records
        publish()
        let sentBefore = transport.meter.traffic.sent
        let outcome = Result { try request() }
        report.streams[batch.stream]?.inFlight = 0
        let (exchange, bytes) = try outcome.get()
        report.bytesSent += Int64(bytes)
        requested(from: now.boot, sentBefore)
        switch exchange {
        case .stopped:
            return .endSync
        case .failed(let failure):
            fail(failure, stream: batch.stream, after: nil)
            return .endSync
        case .answered(let answer) where bucket != nil:
            return try judge(Verdict(bucket: answer), batch)
        case .answered(let answer)
        where answer.status == 415 && compression.fallBack(accepting: answer.acceptEncoding):
            // Nobody has judged the batch, only its wrapping: at once again, under the same key.
            return try send(batch, token: token)
        case .answered(let answer):
            return try judge(Verdict(answer), batch)
        }
    }

    /// What became of a request, and the bytes of its bodies.
    private typealias Request = () throws -> (Exchange, bytes: Int)

    /// A batch as one request to a server.
    private func post(_ batch: Batch, _ token: String) throws -> Request {
        let body = try body(of: batch)
        let headers = headers(batch, token: token)
        return { [self] in
            defer { wantsFreshConnection = false }
            let exchange = transport.post(
                body,
                headers: headers,
                isFresh: wantsFreshConnection,
                until: stop
            )
            return (exchange, body.length)
        }
    }

    /// A batch as objects in a bucket.
    private func store(
        _ batch: Batch,
        in bucket: BucketUpload,
        keys: String
    ) throws -> Request {
        let reader = try reader()
        return { [self] in
            try bucket.send(batch, from: reader, keys: keys, by: transport, until: stop)
        }
    }

    /// A request that began at `start` is over; `before` is what the meter had counted then.
    private func requested(from start: BootInstant, _ before: Int64) {
        requestsLeft = requestsLeft.map { max(0, $0 - 1) }
        rate.sent(transport.meter.traffic.sent - before, from: start)
        noteTraffic(atOnce: false)
    }

    private func envelope(_ stream: Stream) -> Envelope {
        Envelope(
            streamName: settings.streamNames[stream] ?? "\(stream)",
            deviceID: settings.deviceID
        )
    }

    /// From the draft where the batch has just been frozen, else from the database.
    private func body(of batch: Batch) throws -> any RequestBody {
        // A draft of a database that was replaced meanwhile has other records under the same numbers.
        let draft = queue.epoch == epoch ? draft : nil
        self.draft = nil
        return try draft?.body(of: batch, compression.current)
            ?? BatchBody(
                batch: batch,
                envelope: envelope(batch.stream),
                compression: compression.current,
                reader: reader()
            ).request()
    }

    private func headers(_ batch: Batch, token: String) -> [String] {
        var headers = [
            "Content-Type: application/json", "Accept: application/json",
            "X-Device-Token: \(token)", "Idempotency-Key: \"\(batch.key)\"",
        ]
        if let encoding = compression.current.contentEncoding {
            headers.append("Content-Encoding: \(encoding)")
        }
        return headers
    }

    private func judge(_ verdict: Verdict, _ batch: Batch) throws -> Next {
        switch verdict {
        case .accepted:
            try queue.perform { try $0.uploaded(batch) }
            succeed(batch)
            return .goOn
        case .retry(let failure, let after):
            fail(failure, stream: batch.stream, after: after)
            resting.insert(batch.stream)
            // Who asks to be left alone means this device, not a stream; other errors may be of this stream only.
            return after == nil && !endsAtFailure ? .nextStream : .endSync
        case .tokenRefused(let failure):
            note(failure, batch.stream)
            report.phase = .tokenRefused
            return .endSync
        case .endpointWrong(let failure):
            note(failure, batch.stream)
            report.phase = .endpointWrong
            return .endSync
        case .tooLarge(let words):
            try queue.perform {
                if batch.records > 1 {
                    try $0.split(batch)
                } else {
                    try $0.quarantine(batch, words: words)
                }
            }
            note(Failure("batch too large for the server: \(words)", code: .server), batch.stream)
            return .goOn
        case .refused(let words):
            try refuse(batch, words: words)
            return .goOn
        }
    }

    /// Halves until the refused record stands alone, then sets it aside.
    private func refuse(_ batch: Batch, words: String) throws {
        try queue.perform { writer in
            try writer.refused(batch, words: words)
            var refused = batch
            refused.attempts += 1
            refused.error = words
            if batch.records > 1 {
                try writer.split(refused)
            } else {
                try writer.quarantine(refused, words: words)
            }
        }
        note(Failure("the server refused records: \(words)", code: .server), batch.stream)
    }

    // MARK: The report

    private func succeed(_ batch: Batch) {
        let now = clock.stamp()
        report.lastSuccessAt = now
        report.streams[batch.stream]?.lastSuccessAt = now
        report.streams[batch.stream]?.lastError = nil
        report.streams[batch.stream]?.uploaded += batch.records
        publish()
    }

    private func fail(_ failure: Failure, stream: Stream?, after: Duration?) {
        self.failure = (true, [self.failure.after, after].compactMap { $0 }.max())
        for affected in stream.map({ [$0] }) ?? Self.order { note(failure, affected) }
    }

    private func note(_ failure: Failure, _ stream: Stream) {
        report.streams[stream]?.lastError = TimedFailure(failure: failure, at: clock.stamp())
        publish()
    }

    /// Enters bytes on the wire, at most twice a minute: each time is a commit.
    private func noteTraffic(atOnce: Bool) {
        let now = clock.now()
        if !atOnce, let trafficNotedAt, now - trafficNotedAt < .seconds(30) { return }
        let traffic = transport.meter.traffic
        guard traffic.total > 0 else { return }
        trafficNotedAt = now
        if (try? queue.perform { try $0.note(traffic) }) != nil { transport.meter.clear() }
    }

    private func publish() { board.loaded(report) }
}
