// Uploads to an object store: one object per batch, with the same name and content at each retry.
import Host
import HTTP
import JSON
import Queue
import Records

/// Stores batches; lives on the sync's thread.
final class BucketDestination: Destination {
    private let settings: DestinationSettings
    /// nil if no queue is uploaded, as in an enrolment.
    private let names: ObjectNames?
    private let transport: Transport
    /// `ID:SECRET`.
    private var keys = ""
    /// The audio already stored, which is not sent again.
    private let stored: StoredAudio

    init(_ settings: DestinationSettings, _ queue: Queue?) throws {
        self.settings = settings
        names = try queue.map { try ObjectNames(settings, $0) }
        stored = StoredAudio(settings.transport.endpoint, queue)
        transport = try Transport(settings.transport)
    }

    func begin() throws { keys = try settings.token() }

    func networkChanged() { transport.networkChanged() }

    /// Returns the last record that fits; a batch also ends at midnight, as its object lies under
    /// one date.
    func lastRecord(of range: PendingRange, limit: Int, from reader: Reader) throws -> Int64 {
        let source = try RecordSource(reader: reader, clockMap: range.clockMap)
        var size = Envelope.room
        var last = range.first
        var day: RecordDay?
        try source.forEachLength(range.stream, range.first...range.last) { sequence, json, length in
            size += length + 1
            let ownDay = RecordDay(json)
            if sequence == range.first { day = ownDay }
            guard sequence == range.first || size <= limit && ownDay == day else { return false }
            last = sequence
            return true
        }
        return last
    }

    /// Stores the audio of a batch, then its records: the object of a batch exists only with all
    /// its audio.
    ///
    /// The verdict is that of the last request: the first object that fails ends the batch.
    func send(
        _ batch: Batch,
        from reader: Reader,
        mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) throws -> Delivery {
        let source = try RecordSource(reader: reader, clockMap: batch.clockMap, sound: .named)
        let date = try source.time(batch.stream, batch.first) ?? batch.sentAt
        let names = names?.of(batch)
        let folder = BucketFolder(
            stream: names?.streams["\(batch.stream)"] ?? settings.name(of: batch.stream),
            date: date,
            device: names?.device ?? settings.deviceID
        )
        var delivery = Delivery()
        for chunk in try soundToStore(batch, source) {
            let object = try Self.object(chunk, of: source, in: folder)
            put(object, &delivery, mayCost, until: stop)
            guard delivery.verdict == .accepted else { return delivery }
            stored.record(batch, through: chunk.sequence)
        }
        put(try object(of: batch, source, in: folder), &delivery, mayCost, until: stop)
        return delivery
    }

    private func soundToStore(_ batch: Batch, _ source: RecordSource) throws -> [Stored<Chunk>] {
        guard batch.stream == .audio else { return [] }
        let first = stored.through(batch).map { max(batch.first, $0 + 1) } ?? batch.first
        return first > batch.last ? [] : try source.chunks(first...batch.last)
    }

    private static func object(
        _ chunk: Stored<Chunk>,
        of source: RecordSource,
        in folder: BucketFolder
    ) throws -> BucketObject {
        try BucketObject(
            key: folder.key(sound: try source.fileName(of: chunk)),
            type: chunk.record.codec.mediaType
        ) {
            // Opening reads the database and may throw, so it waits for the first piece.
            var file: PieceSupply?
            return {
                let next = try file ?? source.soundFile(of: chunk)
                file = next
                return try next()
            }
        }
    }

    private func object(
        of batch: Batch,
        _ source: RecordSource,
        in folder: BucketFolder
    ) throws -> BucketObject {
        let name = names?.of(batch).compression
        let compression = name.flatMap { Compression(rawValue: $0) } ?? settings.compression
        return try BucketObject(
            key: folder.key(batch.key, compression),
            type: compression.objectType,
            BatchBody(batch: batch, envelope: nil, compression: compression, source: source).pieces
        )
    }

    private func put(
        _ object: BucketObject,
        _ delivery: inout Delivery,
        _ mayCost: (Int64, Traffic) -> Bool,
        until stop: StopSignal
    ) {
        let request = HTTPRequest(
            putting: object,
            into: settings.transport.endpoint,
            region: settings.region ?? "",
            keys: keys
        )
        _ = delivery.request(request, over: transport, mayCost: mayCost, until: stop) {
            Verdict(bucket: $0)
        }
    }

    /// Stores a small object that names the device, which shows that URL and keys are correct.
    ///
    /// Throws a Failure with the store's or the network's message.
    func verify(until stop: StopSignal, onTraffic: (Traffic) -> Void) throws {
        var json = JSONWriter()
        json.object { $0.field("device_id", settings.deviceID) }
        // Query engines skip names that begin with `_`.
        let key = "_waypost/device=\(settings.deviceID).json"
        let bytes = json.bytes
        let object = try BucketObject(key: key, type: "application/json") {
            var rest: [[UInt8]] = [bytes]
            return { rest.popLast() }
        }
        var delivery = Delivery()
        put(object, &delivery, { _, _ in true }, until: stop)
        onTraffic(delivery.traffic)
        try delivery.verdict.requireAccepted(by: "the store")
    }
}
