// Batches that never get through while others do: one of them must not hold up its stream for ever.
import Host
import JSON
import Queue
import Records

/// Counts the failures of batches that no server has judged; kept as a memo of the queue.
///
/// A failure counts once another batch is accepted, in the same sync or later: an outage counts against nobody.
/// After the fifth one a batch is sent in parts. A batch that cannot be split waits behind its stream.
/// Used by the sync's thread.
final class FailingBatches {
    private struct Entry: Codable {
        var key: String
        var failures: Int
    }

    /// After so many failures a batch is stuck.
    static let limit = 5
    /// What a part of a stuck batch begins with: its second failure is enough.
    private static let ofParts = limit - 2
    private static let firstProbe = 2 * limit
    /// So many failures of stuck batches and their parts in a row are an outage, perhaps.
    private static let inARow = 5
    /// The memo has at most so many; the oldest are forgotten, and are counted again.
    private static let kept = 100
    private static let memo = "failing_batches"

    private let queue: Queue
    private var entries: [Entry]
    /// Failures since a batch was accepted, which do not count yet.
    private var open: [String: Int] = [:]
    /// Syncs since then.
    private var vainSyncs = 0
    /// From so many on a record that was not sent yet goes first, to see whether the server takes others.
    private var probeAt = firstProbe
    /// Failures of stuck batches and their parts in this sync since a batch was accepted.
    private var row = 0
    /// Batches that failed in this sync and were passed over.
    private var passed: Set<Int64> = []
    /// Of each stream, the first record of the last batch that was tried behind it.
    private var last: [Stream: Int64] = [:]

    init(_ queue: Queue) {
        self.queue = queue
        let memo = queue.remembered(Self.memo).map { Array($0.utf8) } ?? []
        entries = (try? JSONInput.decode([Entry].self, from: memo, snakeCase: true)) ?? []
    }

    // MARK: Syncs

    func beginSync() { (row, passed) = (0, []) }

    func endSync() { if !open.isEmpty { vainSyncs += 1 } }

    /// Nothing was accepted for long, and one batch may be all that was tried.
    var wantsProbe: Bool { vainSyncs >= probeAt }

    /// A record that no server had seen was sent: in an outage, the next one follows after twice the time.
    func probed() { probeAt *= 2 }

    // MARK: Batches

    /// It goes after all others of its stream.
    func waitsBehind(_ batch: Batch) -> Bool { failures(of: batch) >= Self.limit }

    /// It has had its turn in this sync.
    func wasPassedOver(_ batch: Batch) -> Bool { passed.contains(batch.id) }

    /// It comes after the last one that was tried behind its stream.
    func isBehindLast(_ batch: Batch) -> Bool { batch.first > last[batch.stream] ?? 0 }

    /// It is stuck with one more failure.
    func isLastChance(_ batch: Batch) -> Bool { failures(of: batch) >= Self.limit - 1 }

    /// Whether its stream may go on although it failed.
    func mayPassOver(_ batch: Batch) -> Bool {
        failures(of: batch) >= Self.ofParts && row < Self.inARow
    }

    /// The server has it, or refused it.
    func judged(_ batch: Batch) {
        open[batch.key] = nil
        if failures(of: batch) > 0 { set(batch.key, 0) }
    }

    /// The server has it, so it takes batches: the failures of others count.
    func accepted(_ batch: Batch) {
        judged(batch)
        for (key, count) in open {
            // Several failed: that may have been an outage, which ended between the last of them and this one.
            let sum = failures(of: key) + (open.count == 1 ? count : 1)
            // Only its own next failure makes it stuck.
            set(key, min(sum, Self.limit - 1))
        }
        (open, vainSyncs, probeAt, row) = ([:], 0, Self.firstProbe, 0)
    }

    func failed(_ batch: Batch) {
        if waitsBehind(batch) {
            last[batch.stream] = batch.first
        } else {
            open[batch.key, default: 0] += 1
        }
        passed.insert(batch.id)
        if failures(of: batch) >= Self.ofParts { row += 1 }
    }

    /// An uploaded batch that is sent again failed while the server takes others; whether it did so often enough.
    ///
    /// In a full memo it is not counted: what is stuck must not be forgotten for it.
    func resendFailed(_ batch: Batch) -> Bool {
        let count = failures(of: batch) + 1
        if count >= Self.limit {
            set(batch.key, 0)
        } else if count > 1 || entries.count < Self.kept {
            set(batch.key, count)
        }
        return count >= Self.limit
    }

    /// It cannot be split.
    func putBehind(_ batch: Batch) {
        open[batch.key] = nil
        set(batch.key, Self.limit)
    }

    /// It is sent in parts from now on.
    func split(_ batch: Batch, into parts: [Batch]) {
        let failures = min(failures(of: batch), Self.ofParts)
        judged(batch)
        for part in parts where failures > 0 { set(part.key, failures) }
    }

    // MARK: The memo

    private func failures(of batch: Batch) -> Int { failures(of: batch.key) }

    private func failures(of key: String) -> Int {
        entries.first { $0.key == key }?.failures ?? 0
    }

    private func set(_ key: String, _ failures: Int) {
        entries.removeAll { $0.key == key }
        if failures > 0 { entries.append(Entry(key: key, failures: failures)) }
        entries = entries.suffix(Self.kept)
        queue.remember(Self.memo, String(decoding: encodedJSON(entries), as: UTF8.self))
    }
}
