// The server of a simulated world as the uploader's destination.
internal import Host
internal import HTTP
internal import Queue
internal import Records
internal import SimulatedDisk
internal import Upload

/// Replaces network and server; bodies and verdicts are the real ones.
final class SimulatedDestination: Destination {
    private unowned let device: any AccountHolder
    private let server: Server
    private let truth: () -> Truth
    private let wires: [Stream: String]
    /// Bytes of a request beside its body.
    private static let header: Int64 = 500
    private let isMetered: Bool
    /// Bytes of all requests so far, and of the largest.
    private(set) var metered: Int64 = 0
    private(set) var largest: Int64 = 0
    private var draft: (body: BodyDraft, reader: Reader)?
    private var columns = ColumnsChoice(isAllowed: true)
    /// A violation found in a request.
    private(set) var found: Violation?

    init(
        _ device: any AccountHolder,
        _ queue: Queue,
        _ server: Server,
        isMetered: Bool,
        truth: @escaping () -> Truth
    ) {
        self.isMetered = isMetered
        self.device = device
        self.server = server
        self.truth = truth
        wires = Dictionary(uniqueKeysWithValues: queue.streams.kinds.map { ($0.stream, $0.wire) })
    }

    func begin() throws { draft = nil }

    func networkChanged() {}

    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        let draft = try columns.draft(of: range) {
            try BodyDraft(
                $0,
                limit: limit,
                envelope: envelope($0.stream),
                compression: .none,
                reader: reader
            )
        }
        self.draft = (draft, reader)
        return draft.last
    }

    var form: Batch.Form { draft?.body.form ?? .rows }

    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery {
        let body = try body(of: batch, reader)
        var bytes: [UInt8] = []
        while case let piece = try body.read(atMost: 1 << 16), !piece.isEmpty { bytes += piece }
        guard mayCost(Int64(bytes.count) + Self.header, Traffic()) else { return Delivery(.held) }
        var delivery = Delivery()
        delivery.bytes = bytes.count
        // Only with a budget: the stored counters change the disk, and a seed must keep its
        // history.
        if isMetered {
            delivery.traffic.sent = Int64(bytes.count) + Self.header
            metered += delivery.traffic.sent
            largest = max(largest, delivery.traffic.sent)
        }
        do {
            let answer = try server.post(bytes, key: batch.key, truth(), from: device)
            delivery.verdict =
                answer.map {
                    columns.verdict($0, Verdict($0, records: batch.records), of: batch.form)
                }
                ?? .unreachable(Failure("no answer"))
            delivery.isUnsent = server.mode == .stalls
            delivery.duplicates = answer?.reply.duplicates ?? 0
        } catch let violation as Violation {
            found = violation
        }
        return delivery
    }

    private func envelope(_ stream: Stream) -> Envelope {
        Envelope(streamName: wires[stream] ?? "\(stream)", deviceID: "device")
    }

    private func body(of batch: Batch, _ reader: Reader) throws -> RequestBody {
        let draft = draft.flatMap { $0.reader === reader ? $0.body : nil }
        self.draft = nil
        if let body = try draft?.body(of: batch, .none) { return body }
        return try BatchBody(
            batch: batch,
            envelope: envelope(batch.stream),
            compression: .none,
            reader: reader
        ).request()
    }
}
