// Batches to an object store: one object a batch, written as often as it takes, always the same.
internal import Board
package import Host
internal import Store

/// What is special to a bucket as the place that uploads go to.
package struct BucketSettings: Sendable {
    /// As requests are signed for.
    package var region: String

    package init(region: String) {
        self.region = region
    }
}

/// Stores batches; lives on the uploader's thread.
final class BucketUpload {
    private let settings: UploadSettings
    private let region: String
    /// The batch that is under way, and up to where its sound is stored: that need not go twice.
    private var stored: (batch: String, through: Int64)?

    init(_ settings: UploadSettings, _ bucket: BucketSettings) {
        self.settings = settings
        region = bucket.region
    }

    /// Stores the sound of a batch, then its records: the object of a batch is there only with all its sound.
    ///
    /// Gives what became of the last request, the first that did not store its object, and the bytes sent.
    func send(
        _ batch: Batch,
        from reader: Reader,
        keys: String,
        by transport: borrowing Transport,
        until stop: StopSignal
    ) throws -> (exchange: Exchange, bytes: Int) {
        let source = try RecordSource(reader: reader, clockMap: batch.clockMap, sound: .named)
        let date = try source.time(batch.stream, batch.first) ?? batch.sentAt
        let folder = BucketFolder(stream: streamName(batch), date: date, device: settings.deviceID)
        var sent = 0
        for chunk in try soundToStore(batch, source) {
            let object = try Self.object(chunk, of: source, in: folder)
            let exchange = put(object, keys: keys, by: transport, until: stop)
            sent += object.body.length
            guard Self.isStored(exchange) else { return (exchange, sent) }
            stored = (batch.key, chunk.sequence)
        }
        let object = try object(of: batch, source, in: folder)
        let exchange = put(object, keys: keys, by: transport, until: stop)
        return (exchange, sent + object.body.length)
    }

    private func streamName(_ batch: Batch) -> String {
        settings.streamNames[batch.stream] ?? "\(batch.stream)"
    }

    private func soundToStore(_ batch: Batch, _ source: RecordSource) throws -> [Stored<Chunk>] {
        guard batch.stream == .audio else { return [] }
        let known = stored.flatMap { $0.batch == batch.key ? $0.through : nil }
        let first = known.map { $0 + 1 } ?? batch.first
        return first > batch.last ? [] : try source.chunks(first...batch.last)
    }

    private static func object(
        _ chunk: Stored<Chunk>,
        of source: RecordSource,
        in folder: BucketFolder
    ) throws -> BucketObject {
        try BucketObject(
            key: folder.key(sound: source.fileName(of: chunk)),
            type: chunk.record.codec.mediaType
        ) {
            // Opening reads the database, so it waits for the first piece, which may throw.
            var file: (any SoundFile)?
            return {
                let open = try file ?? source.soundFile(of: chunk)
                file = open
                return try open.next()
            }
        }
    }

    private func object(
        of batch: Batch,
        _ source: RecordSource,
        in folder: BucketFolder
    ) throws -> BucketObject {
        let compression = settings.compression
        return try BucketObject(
            key: folder.key(batch.key, compression),
            type: compression.objectType
        ) {
            let lines = RecordLines(batch, of: source, compression)
            return { try lines.next() }
        }
    }

    private func put(
        _ object: BucketObject,
        keys: String,
        by transport: borrowing Transport,
        until stop: StopSignal
    ) -> Exchange {
        transport.put(
            object.body,
            headers: ["Content-Type: \(object.type)"],
            to: BucketURL.object(object.key, in: settings.transport.endpoint),
            signing: RequestSigning(region: region, keys: keys, digest: object.digest),
            until: stop
        )
    }

    private static func isStored(_ exchange: Exchange) -> Bool {
        guard case .answered(let answer) = exchange else { return false }
        return Verdict(bucket: answer) == .accepted
    }

    /// Stores a small object that names the device, which shows that address and keys are right.
    ///
    /// Throws a Failure with what the store or the network said.
    func verify(keys: String, by transport: borrowing Transport, until stop: StopSignal) throws {
        var json = JSONText()
        json.object { $0.field("device_id", settings.deviceID) }
        // Engines pass over names that begin with `_`.
        let key = "_waypost/device=\(settings.deviceID).json"
        let bytes = json.bytes
        let object = try BucketObject(key: key, type: "application/json") {
            var rest: [[UInt8]] = [bytes]
            return { rest.popLast() }
        }
        switch put(object, keys: keys, by: transport, until: stop) {
        case .stopped: throw Failure("enrolment was interrupted")
        case .failed(let failure): throw failure
        case .answered(let answer):
            switch Verdict(bucket: answer) {
            case .accepted: return
            case .retry(let failure, _), .tokenRefused(let failure), .endpointWrong(let failure):
                throw failure
            case .tooLarge(let words), .refused(let words):
                throw Failure("the store refused the enrolment: \(words)", code: .server)
            }
        }
    }
}

extension UploadSettings {
    /// Asks the endpoint once whether it takes uploads of this device.
    ///
    /// Throws a Failure with what it or the network said.
    package func verify(until stop: StopSignal) throws {
        guard let bucket else {
            return try Enrolment.verify(transport, token: token(), until: stop)
        }
        let keys = try token()
        let transport = try Transport(transport)
        try BucketUpload(self, bucket).verify(keys: keys, by: transport, until: stop)
    }
}
