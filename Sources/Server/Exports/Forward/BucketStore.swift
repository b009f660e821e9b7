// Stores batches as objects of a bucket, identical to those of a gateway that writes there itself.
import HTTP
import Host
import ServerArchive
import ServerBase
import Synchronization

/// Stores batches, each on its own thread; has no state besides the work in progress.
///
/// An object's name follows from the batch, so storing is idempotent: whichever receiver a gateway
/// reaches, and however often, the same object is written again.
final class BucketStore: Sendable {
    static let compression = Compression.gzip
    /// A batch that takes longer is refused; the retry skips the audio that was already stored.
    private static let patience = Duration.seconds(25)

    private let place: BucketPlace
    private let folder: String
    private let totalsSoFar = Mutex(ArchiveTotals(records: 0, batches: 0))
    private let idle: Condition<[Transport]>
    private let sound = RecentObjects()
    /// Making the objects needs memory, so at most two batches do it at once.
    private let making = Turn(2)
    private let stop: StopSignal
    private let trouble: BucketFault

    /// `folder`: for bodies too large for memory, in unlinked files.
    init(_ place: BucketPlace, folder: String, log: ServerLog) throws {
        self.place = place
        self.folder = folder
        stop = try StopSignal()
        trouble = BucketFault(log)
        // Reports a setting that libcurl cannot use at the start.
        idle = Condition([try Transport(place.transport)])
    }

    /// Stored since the start.
    var totals: ArchiveTotals { totalsSoFar.withLock { $0 } }

    /// Aborts the uploads in progress.
    func end() { stop.raise() }

    /// Stores a whole batch; the bucket has confirmed each object when this returns.
    ///
    /// Throws an HTTPError: 503 for any problem of the bucket, so that the gateway keeps its
    /// records.
    func store(_ batch: IncomingBatch, key: String, body: ByteView) throws -> Receipt {
        let deadline = SystemClock().now() + Self.patience
        let days = try making.take { try DayObjects(batch, body, folder: folder) }
        let line = try takeLine()
        defer { idle.withLock { $0.append(line) } }
        let put = BucketPut(
            place: place,
            keys: try keys(),
            transport: line,
            deadline: deadline,
            stop: stop
        )
        do {
            if days.hasAudio {
                try batch.forEachRecord(of: body) { try storeAudio(of: $0, batch, body, put) }
            }
            for (date, lines) in days.inOrder {
                let name = batch.bucketFolder(date).key(key, Self.compression)
                try put(BucketObject(key: name, type: Self.compression.objectType, lines))
            }
        } catch let refusal as HTTPError {
            trouble.began(refusal)
            throw refusal
        }
        trouble.ended()
        totalsSoFar.withLock {
            $0.records += Int64(batch.count)
            $0.batches += 1
        }
        return Receipt(accepted: batch.count, duplicates: 0)
    }

    private func keys() throws -> String {
        do { return try place.keys() } catch {
            let refusal = HTTPError(status: 503, reason: "\(error)", retryAfter: BucketPut.pause)
            trouble.began(refusal)
            throw refusal
        }
    }

    private func takeLine() throws -> Transport {
        try idle.withLock { $0.popLast() } ?? Transport(place.transport)
    }

    private func storeAudio(
        of record: IncomingRecord,
        _ batch: IncomingBatch,
        _ body: ByteView,
        _ put: BucketPut
    ) throws {
        guard let audio = record.audio, let name = record.soundName else { return }
        let file = Spool(folder: folder, memory: 64 << 10)
        try Base64Text(body, audio.data).decode { try $0.withUnsafeBytes(file.append) }
        let object = try BucketObject(
            key: batch.bucketFolder(record.time.date).key(sound: name),
            type: "audio/\(audio.format)",
            file
        )
        guard !sound.has(object) else { return }
        try put(object)
        sound.add(object)
    }
}

/// Audio objects stored recently, so that the retry of a refused batch can skip them.
///
/// Otherwise a store too slow for all the audio of a batch would never get it.
private final class RecentObjects: Sendable {
    private static let maximum = 2000
    private let known = Mutex((newer: Set<String>(), older: Set<String>()))

    func has(_ object: BucketObject) -> Bool {
        let identity = object.key + object.digest
        return known.withLock { $0.newer.contains(identity) || $0.older.contains(identity) }
    }

    func add(_ object: BucketObject) {
        known.withLock {
            if $0.newer.count >= Self.maximum { $0 = ([], $0.newer) }
            $0.newer.insert(object.key + object.digest)
        }
    }
}

extension BucketObject {
    /// An object with the content of a spool, which is read in pieces.
    fileprivate init(key: String, type: String, _ spool: Spool) throws {
        try self.init(key: key, type: type, keeps: 0) {
            var place = 0
            return {
                let piece = try spool.bytes(from: place, atMost: 64 << 10)
                place += piece.count
                return piece.isEmpty ? nil : piece
            }
        }
    }
}
