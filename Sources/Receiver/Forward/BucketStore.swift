// Batches as objects of a bucket: the very ones that a gateway which writes there itself would have made.
import Foundation
import Host
import HTTP

/// Stores batches, each on its own thread; keeps nothing but what is under way.
///
/// The name of each object follows from the batch, so it does not matter which of several receivers a gateway
/// meets, nor how often: the same object is written again.
final class BucketStore: @unchecked Sendable {
    // Unchecked because the idle lines and the totals are used under `lock`.
    static let compression = Compression.gzip
    /// A batch that takes longer is told off, and what was stored of its sound is passed over at the next try.
    private static let patience = Duration.seconds(25)

    private let place: BucketPlace
    private let folder: String
    private let lock = NSLock()
    private var idle: [BucketLine] = []
    private var total = Archive.Totals(records: 0, batches: 0)
    private let sound = RecentObjects()
    /// What making the objects costs in memory, it costs so many times at most.
    private let making = DispatchSemaphore(value: 2)
    private let stop: StopSignal
    private let trouble: BucketTrouble

    /// `folder`: for bodies that memory is not given to, in files without names.
    init(_ place: BucketPlace, folder: String, log: ServerLog) throws {
        self.place = place
        self.folder = folder
        stop = try StopSignal()
        trouble = BucketTrouble(log)
        // A setting that libcurl cannot use is told at the start.
        idle = [try BucketLine(place)]
    }

    /// Stored since the start.
    var totals: Archive.Totals { lock.withLock { total } }

    /// What is under way ends now.
    func end() { stop.raise() }

    /// Stores all of a batch; the bucket has said yes to each object when this returns.
    ///
    /// Throws an HTTPRefusal: 503 for whatever the bucket does, so that the gateway keeps its records.
    func store(_ batch: IncomingBatch, key: String, body: ByteView) throws -> Receipt {
        let deadline = SystemClock().now() + Self.patience
        let days = try made(batch, body)
        let line = try takeLine()
        defer { lock.withLock { idle.append(line) } }
        let put = BucketPut(place, try keys(), line, until: deadline, or: stop)
        do {
            if days.hasSound {
                try batch.forEachRecord(of: body) { try storeSound(of: $0, batch, body, put) }
            }
            for (date, lines) in days.inOrder {
                let name = BucketFolder(path: batch.folder(date)).key(key, Self.compression)
                try put(BucketObject(key: name, type: Self.compression.objectType, lines))
            }
        } catch let refusal as HTTPRefusal {
            trouble.began(refusal)
            throw refusal
        }
        trouble.ended()
        lock.withLock {
            total.records += Int64(batch.count)
            total.batches += 1
        }
        return Receipt(accepted: batch.count, duplicates: 0)
    }

    private func made(_ batch: IncomingBatch, _ body: ByteView) throws -> DayObjects {
        making.wait()
        defer { making.signal() }
        return try DayObjects(batch, body, folder: folder)
    }

    private func keys() throws -> String {
        do { return try place.keys() } catch {
            let refusal = HTTPRefusal(status: 503, reason: "\(error)", retryAfter: BucketPut.pause)
            trouble.began(refusal)
            throw refusal
        }
    }

    private func takeLine() throws -> BucketLine {
        try lock.withLock { idle.popLast() } ?? BucketLine(place)
    }

    private func storeSound(
        of record: IncomingRecord,
        _ batch: IncomingBatch,
        _ body: ByteView,
        _ put: BucketPut
    ) throws {
        guard let audio = record.audio, let name = record.soundName else { return }
        let file = Spool(folder: folder, memory: 64 << 10)
        try Base64Text(body, audio.data).decode { try $0.withUnsafeBytes(file.append) }
        let object = try BucketObject(
            key: BucketFolder(path: batch.folder(record.time.date)).key(sound: name),
            type: "audio/\(audio.format)",
            file
        )
        guard !sound.has(object) else { return }
        try put(object)
        sound.add(object)
    }
}

/// Sound that was stored a while ago, so that a batch which was told off goes on behind it.
///
/// Without it a store that is too slow for all the sound of a batch would never have it.
private final class RecentObjects: @unchecked Sendable {
    // Unchecked because the sets are used under `lock`.
    private static let most = 2000
    private let lock = NSLock()
    private var (newer, older): (Set<String>, Set<String>) = ([], [])

    func has(_ object: BucketObject) -> Bool {
        let mark = object.key + object.digest
        return lock.withLock { newer.contains(mark) || older.contains(mark) }
    }

    func add(_ object: BucketObject) {
        lock.withLock {
            if newer.count >= Self.most { (newer, older) = ([], newer) }
            newer.insert(object.key + object.digest)
        }
    }
}

extension BucketObject {
    /// What is in a spool, which is not kept in memory a second time.
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
