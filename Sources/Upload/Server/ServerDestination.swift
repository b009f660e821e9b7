// An ingest server as the destination: one request per batch (waypost-protocol(7), UPLOADS).
import Host
import HTTP
import Queue
import Records

/// Posts batches; lives on the sync's thread.
final class ServerDestination: Destination {
    private let settings: DestinationSettings
    private let line: Line
    private var compression: CompressionChoice
    private var token = ""
    /// The server itself has answered in this sync.
    private var isServerKnown = false
    /// The body of a batch that is about to be frozen, and the reader it was made with: another database has other
    /// records under the same numbers.
    private var draft: (body: BodyDraft, reader: Reader)?
    /// The body behind the one that is being sent, which is made while that is under way, a piece at a time.
    private(set) var ahead: (body: BodyDraft, reader: Reader)?

    init(_ settings: DestinationSettings) throws {
        self.settings = settings
        line = try Line(settings.transport)
        compression = CompressionChoice(settings.compression)
    }

    func begin() throws {
        (draft, ahead) = (nil, nil)
        isServerKnown = false
        token = try settings.token()
    }

    func networkChanged() { line.networkChanged() }

    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        let draft =
            try takeAhead(range, limit, reader)
            ?? BodyDraft(
                range,
                limit: limit,
                envelope: envelope(range.stream),
                compression: compression.current,
                reader: reader
            )
        self.draft = (draft, reader)
        return draft.last
    }

    private func takeAhead(_ range: PendingRange, _ limit: Int, _ reader: Reader) -> BodyDraft? {
        guard let ahead, ahead.reader === reader,
            ahead.body.isOf(range, limit: limit, compression.current)
        else { return nil }
        self.ahead = nil
        // Where it cannot be read, it is made anew, and the error told.
        return (try? finish(ahead.body)) == nil ? nil : ahead.body
    }

    private func finish(_ draft: BodyDraft) throws { while try draft.advance() {} }

    /// Makes a piece of the body that comes next; false when there is nothing to make.
    private func advance(_ next: BodyDraft?) -> Bool {
        do {
            return try next?.advance() ?? false
        } catch {
            ahead = nil
            return false
        }
    }

    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery {
        var delivery = Delivery()
        while true {
            let draft = takeDraft(reader)
            let made = try draft?.body(of: batch, compression.current)
            let (body, headers) = (try made ?? body(of: batch, reader), headers(batch))
            let cost = Line.cost(body, headers: headers)
            delivery.isHeld = !mayCost(cost, delivery.traffic)
            if delivery.isHeld { return delivery }
            // What cannot be read is found out when its turn comes.
            let next = made == nil ? nil : try? draft?.next(compression.current, from: reader)
            if let next { ahead = (next, reader) }
            let exchange = line.post(
                body,
                headers: headers,
                meanwhile: { advance(next) },
                until: stop
            )
            delivery.bytes += body.length
            delivery.traffic = delivery.traffic + line.takeTraffic()
            if case .answered(let answer) = exchange, answer.status == 415,
                compression.fallBack(accepting: answer.acceptEncoding)
            {
                // Only the compression was refused, not the data: sent again at once, under the same key.
                delivery.wasRepeated = true
                continue
            }
            delivery.take(exchange) {
                Verdict($0, records: batch.records, ofKnownServer: isServerKnown)
            }
            if case .answered(let answer) = exchange, answer.isPageAgainstRecords,
                !isServerKnown || batch.records == 1
            {
                doubt(answer, &delivery, mayCost, until: stop)
            }
            if delivery.verdict == .accepted { isServerKnown = true }
            // A connection to whoever had it, and the name's address there, are of no use to the next request.
            if case .answered(let answer) = exchange, answer.isPage || answer.status == 511,
                !isServerKnown
            {
                line.networkChanged()
            }
            return delivery
        }
    }

    /// Believes a page that refuses a batch only where something else is answered at another address of the server.
    private func doubt(
        _ page: Answer,
        _ delivery: inout Delivery,
        _ mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) {
        let (body, headers) = (MemoryBody([]), Enrolment.headers(token: token))
        delivery.isHeld = !mayCost(Line.cost(body, headers: headers), delivery.traffic)
        if delivery.isHeld { return }
        let url = Enrolment.url(ingest: settings.transport.endpoint)
        let exchange = line.post(body, headers: headers, to: url, until: stop)
        delivery.traffic = delivery.traffic + line.takeTraffic()
        switch exchange {
        case .stopped: delivery.verdict = nil
        case .failed(let failure): delivery.verdict = .unreachable(failure)
        case .answered(let answer) where answer.isStrangers(like: page):
            delivery.verdict = .stranger(page)
        case .answered: isServerKnown = true
        }
    }

    private func envelope(_ stream: Stream) -> Envelope {
        Envelope(streamName: settings.name(of: stream), deviceID: settings.deviceID)
    }

    /// From the database, where the batch has not just been frozen.
    private func body(of batch: Batch, _ reader: Reader) throws -> any RequestBody {
        try BatchBody(
            batch: batch,
            envelope: envelope(batch.stream),
            compression: compression.current,
            reader: reader
        ).request()
    }

    private func takeDraft(_ reader: Reader) -> BodyDraft? {
        defer { draft = nil }
        return draft.flatMap { $0.reader === reader ? $0.body : nil }
    }

    private func headers(_ batch: Batch) -> [String] {
        var headers = [
            "Content-Type: application/json", "Accept: application/json",
            "X-Device-Token: \(token)", "Idempotency-Key: \"\(batch.key)\"",
        ]
        if let encoding = compression.current.contentEncoding {
            headers.append("Content-Encoding: \(encoding)")
        }
        return headers
    }
}
