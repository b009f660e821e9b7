// An ingest server as the destination: one request a batch (contract, section 3).
internal import Host
internal import Queue
internal import Requests
internal import Streams

/// Posts batches; lives on the sync's thread.
final class ServerDestination: Destination {
    private let settings: DestinationSettings
    private let line: Line
    private var compression: CompressionChoice
    private var token = ""
    /// The body of a batch that is about to be frozen, and the reader it was made with: another database has other
    /// records under the same numbers.
    private var draft: (body: BodyDraft, reader: Reader)?

    init(_ settings: DestinationSettings) throws {
        self.settings = settings
        line = try Line(settings.transport)
        compression = CompressionChoice(settings.compression)
    }

    func begin() throws {
        draft = nil
        token = try settings.token()
    }

    func networkChanged() { line.networkChanged() }

    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        let draft = try BodyDraft(
            range,
            limit: limit,
            envelope: envelope(range.stream),
            compression: compression.current,
            reader: reader
        )
        self.draft = (draft, reader)
        return draft.last
    }

    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery {
        var delivery = Delivery()
        while true {
            let (body, headers) = (try body(of: batch, reader), headers(batch))
            let cost = Line.cost(body, headers: headers)
            delivery.isHeld = !mayCost(cost, delivery.traffic)
            if delivery.isHeld { return delivery }
            let exchange = line.post(body, headers: headers, until: stop)
            delivery.bytes += body.length
            delivery.traffic = delivery.traffic + line.takeTraffic()
            if case .answered(let answer) = exchange, answer.status == 415,
                compression.fallBack(accepting: answer.acceptEncoding)
            {
                // Only the compression was refused, not the data: sent again at once, under the same key.
                delivery.wasRepeated = true
                continue
            }
            delivery.take(exchange) { Verdict($0) }
            return delivery
        }
    }

    private func envelope(_ stream: Stream) -> Envelope {
        Envelope(streamName: settings.name(of: stream), deviceID: settings.deviceID)
    }

    /// From the draft where the batch has just been frozen, else from the database.
    private func body(of batch: Batch, _ reader: Reader) throws -> any RequestBody {
        let draft = draft.flatMap { $0.reader === reader ? $0.body : nil }
        self.draft = nil
        return try draft?.body(of: batch, compression.current)
            ?? BatchBody(
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
