// Keeps a batch that fails repeatedly from blocking its stream.
import Host
import JSON
import Queue
import Records

/// Counts the failures of batches that no server has evaluated; stored as a memo of the queue.
///
/// A failure counts once another batch is accepted, in the same sync or later, so an outage counts
/// against no batch. After the fifth one a batch is sent in parts. A batch that cannot be split
/// waits behind its stream.
struct FailingBatches {
    private struct Entry: Codable {
        var key: String
        var failures: Int
    }

    /// The number of failures after which a batch is stuck.
    static let limit = 5
    /// The initial failure count of a part of a stuck batch: its second failure makes it stuck.
    private static let ofParts = limit - 2
    private static let firstProbe = 2 * limit
    /// The number of failures in a row, of stuck batches and their parts, that may be an outage.
    private static let inARow = 5
    /// The most entries in the memo; the oldest are dropped and start again at zero.
    private static let kept = 100
    private static let memo = "failing_batches"

    private let queue: Queue
    private var entries: [Entry]
    /// Failures since a batch was accepted, which do not count yet.
    private var open: [String: Int] = [:]
    /// Syncs with failures since a batch was accepted.
    private var vainSyncs = 0
    /// The number of such syncs after which an unsent record goes first, to test whether the server
    /// accepts others.
    private var probeAt = firstProbe
    /// Failures of stuck batches and their parts in this sync since a batch was accepted.
    private var row = 0
    /// Batches that failed in this sync and were passed over.
    private var passed: Set<Int64> = []
    /// For each stream, the first record of the stuck batch that was tried last.
    private var last: [Stream: Int64] = [:]

    init(_ queue: Queue) {
        self.queue = queue
        let memo = queue.remembered(Self.memo).map { Array($0.utf8) } ?? []
        let known = (try? JSONInput.decode([Entry].self, from: memo, snakeCase: true)) ?? []
        // A damaged memo may say anything.
        entries = known.filter { (1...Self.limit).contains($0.failures) }.suffix(Self.kept)
    }

    // MARK: Syncs

    mutating func beginSync() { (row, passed) = (0, []) }

    mutating func endSync() { if !open.isEmpty { vainSyncs += 1 } }

    /// Nothing was accepted for long, and one batch may be all that was tried.
    var wantsProbe: Bool { vainSyncs >= probeAt }

    /// Doubles the time to the next probe; called after a record was sent that no server had seen.
    mutating func probed() { probeAt *= 2 }

    // MARK: Batches

    /// Returns whether a batch is sent after all others of its stream.
    func waitsBehind(_ batch: Batch) -> Bool { failures(of: batch) >= Self.limit }

    /// Returns whether a batch was already tried in this sync.
    func wasPassedOver(_ batch: Batch) -> Bool { passed.contains(batch.id) }

    /// Returns whether a batch follows the stuck batch of its stream that was tried last.
    func isBehindLast(_ batch: Batch) -> Bool { batch.first > last[batch.stream] ?? 0 }

    /// Returns whether one more failure makes a batch stuck.
    func isLastChance(_ batch: Batch) -> Bool { failures(of: batch) >= Self.limit - 1 }

    /// Returns whether the stream of a failed batch may continue.
    func mayPassOver(_ batch: Batch) -> Bool {
        failures(of: batch) >= Self.ofParts && row < Self.inARow
    }

    /// Clears a batch's failures: the server accepted or refused it.
    mutating func evaluated(_ batch: Batch) {
        open[batch.key] = nil
        if failures(of: batch) > 0 { set(batch.key, 0) }
    }

    /// Handles an accepted batch: it shows that the server accepts batches, so the failures of
    /// others count.
    mutating func accepted(_ batch: Batch) {
        evaluated(batch)
        for (key, count) in open {
            // Several failed: that may have been an outage that ended between the last of them and
            // this one.
            let sum = failures(of: key) + (open.count == 1 ? count : 1)
            // Only its own next failure makes it stuck.
            set(key, min(sum, Self.limit - 1))
        }
        invariant(entries.count <= Self.kept, "the memo is bounded")
        (open, vainSyncs, probeAt, row) = ([:], 0, Self.firstProbe, 0)
    }

    mutating func failed(_ batch: Batch) {
        if waitsBehind(batch) {
            last[batch.stream] = batch.first
        } else {
            open[batch.key, default: 0] += 1
        }
        passed.insert(batch.id)
        if failures(of: batch) >= Self.ofParts { row += 1 }
    }

    /// Counts a failure of a resent batch while the server accepts others; returns whether it
    /// reached the limit.
    ///
    /// If the memo is full it is not counted, because that would drop the entry of a stuck batch.
    mutating func resendFailed(_ batch: Batch) -> Bool {
        let count = failures(of: batch) + 1
        if count >= Self.limit {
            set(batch.key, 0)
        } else if count > 1 || entries.count < Self.kept {
            set(batch.key, count)
        }
        return count >= Self.limit
    }

    /// Marks a batch that cannot be split as stuck.
    mutating func putBehind(_ batch: Batch) {
        open[batch.key] = nil
        set(batch.key, Self.limit)
    }

    /// Replaces a batch by its parts, which inherit its failures.
    mutating func split(_ batch: Batch, into parts: [Batch]) {
        let failures = min(failures(of: batch), Self.ofParts)
        evaluated(batch)
        for part in parts where failures > 0 { set(part.key, failures) }
    }

    // MARK: The memo

    private func failures(of batch: Batch) -> Int { failures(of: batch.key) }

    private func failures(of key: String) -> Int {
        entries.first { $0.key == key }?.failures ?? 0
    }

    private mutating func set(_ key: String, _ failures: Int) {
        invariant((0...Self.limit).contains(failures), "failures are counted up to the limit")
        entries.removeAll { $0.key == key }
        if failures > 0 { entries.append(Entry(key: key, failures: failures)) }
        entries = entries.suffix(Self.kept)
        queue.remember(Self.memo, String(decoding: encodedJSON(entries), as: UTF8.self))
    }
}
