// Uploads to an ingest server: one request per batch (waypost-protocol(7), UPLOADS).
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
    /// The ingest server itself has answered in this sync.
    private var isServerKnown = false
    /// The body of a batch that is about to be frozen, and the reader it was made with: another
    /// database has other records under the same numbers.
    private var draft: (body: BodyDraft, reader: Reader)?
    /// The body after the one being sent, which is made piece by piece during that request.
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
        // If it cannot be read, the caller makes it again, and that reports the error.
        return (try? finish(ahead.body)) == nil ? nil : ahead.body
    }

    private func finish(_ draft: BodyDraft) throws { while try draft.advance() {} }

    /// Makes one piece of the next body; returns false when there is nothing to make.
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
            // A read error here is reported when that batch's turn comes.
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
                // Only the compression was refused, not the data: retry at once under the same key.
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
            // Do not reuse this connection or the cached address: another machine may have
            // answered.
            if case .answered(let answer) = exchange, answer.isPage || answer.status == 511,
                !isServerKnown
            {
                line.networkChanged()
            }
            return delivery
        }
    }

    /// Trusts an HTML page that refuses a batch only if the server answers differently at another
    /// URL.
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

    /// Builds the body from the database, for a batch that was not just frozen.
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
