// Uploads to an ingest server: one request per batch (waypost-protocol(7), UPLOADS).
import Host
import HTTP
import Queue
import Records

/// Posts batches; lives on the sync's thread.
final class ServerDestination: Destination {
    private let settings: DestinationSettings
    private let transport: Transport
    private var compression: CompressionChoice
    private var columns: ColumnsChoice
    private var token = ""
    /// The ingest server itself has answered in this sync.
    private var isServerKnown = false
    /// The body of a batch that is about to be frozen.
    private var draft: BodyDraft?
    /// The body after the one being sent, which is made piece by piece during that request.
    private(set) var ahead: BodyDraft?

    init(_ settings: DestinationSettings) throws {
        self.settings = settings
        transport = try Transport(settings.transport)
        compression = CompressionChoice(settings.compression)
        columns = ColumnsChoice(isAllowed: settings.allowsColumns)
    }

    func begin() throws {
        (draft, ahead) = (nil, nil)
        isServerKnown = false
        token = try settings.token()
    }

    func networkChanged() { transport.networkChanged() }

    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        let made = try columns.draft(of: range) { try draft($0, limit, reader) }
        draft = made
        return made.last
    }

    var form: Batch.Form { draft?.form ?? .rows }

    private func draft(_ range: PendingRange, _ limit: Int, _ reader: Reader) throws -> BodyDraft {
        try buildAhead(range, limit, reader)
            ?? BodyDraft(
                range,
                limit: limit,
                envelope: envelope(range.stream),
                compression: compression.current,
                reader: reader
            )
    }

    private func buildAhead(_ range: PendingRange, _ limit: Int, _ reader: Reader) -> BodyDraft? {
        guard let draft = ahead, draft.isOf(range, limit: limit, compression.current, reader) else {
            return nil
        }
        ahead = nil
        // If it cannot be read, the caller makes it again, and that reports the error.
        return (try? finish(draft)) == nil ? nil : draft
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
            let draft = self.draft.take().flatMap { $0.reader === reader ? $0 : nil }
            let made = try draft?.body(of: batch, compression.current)
            // A read error here is reported when that batch's turn comes.
            let next = made == nil ? nil : try? draft?.next(compression.current)
            if let next { ahead = next }
            let answer = delivery.request(
                HTTPRequest(
                    posting: try made ?? body(of: batch, reader),
                    headers: headers(batch)
                ),
                over: transport,
                mayCost: mayCost,
                meanwhile: { advance(next) },
                until: stop
            ) {
                Verdict($0, records: batch.records, ofKnownServer: isServerKnown)
            }
            if let answer, answer.status == 415,
                compression.fallBack(accepting: answer.acceptEncoding)
            {
                // Only the compression was refused, not the data: retry at once under the same key.
                delivery.wasRepeated = true
                continue
            }
            if let answer {
                delivery.verdict = columns.verdict(answer, delivery.verdict, of: batch.form)
            }
            if let answer, answer.isPageAgainstRecords, !isServerKnown || batch.records == 1 {
                doubt(answer, &delivery, mayCost, until: stop)
            }
            if delivery.verdict == .accepted { isServerKnown = true }
            // Do not reuse this connection or the cached address: another machine may have
            // answered.
            if let answer, answer.isPage || answer.status == 511, !isServerKnown {
                transport.networkChanged()
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
        let verdict = delivery.verdict
        let answer = delivery.request(
            Enrolment.verification(at: settings.transport.endpoint, token: token),
            over: transport,
            mayCost: mayCost,
            until: stop
        ) {
            $0.isStrangers(like: page) ? .stranger(page) : verdict
        }
        if answer != nil, delivery.verdict == verdict { isServerKnown = true }
    }

    private func envelope(_ stream: Stream) -> Envelope {
        Envelope(streamName: settings.name(of: stream), deviceID: settings.deviceID)
    }

    /// Builds the body from the database, for a batch that was not just frozen.
    private func body(of batch: Batch, _ reader: Reader) throws -> RequestBody {
        try BatchBody(
            batch: batch,
            envelope: envelope(batch.stream),
            compression: compression.current,
            reader: reader
        ).request()
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
