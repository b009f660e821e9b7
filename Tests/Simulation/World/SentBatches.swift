// The server's guarantees for records that arrive under another key.

/// The batches that a server received, and the form of their records.
///
/// The guarantee: until a batch has a verdict, it is sent with the same bytes under the same key;
/// or it is split, and then each part holds only records of that batch, each with identical JSON
/// including timestamps, and the old key is not used again. So a server that keeps one record per
/// id has everything once, whatever it did with the whole batch.
struct SentBatches {
    private struct Batch {
        /// A hash of each record's JSON, by its id.
        var records: [String: UInt64]
        /// Some of its records arrived under another key.
        var isSplit = false
    }

    /// By device, because a copy of a card sends pending records under the same keys and splits
    /// them at other times.
    private var batches: [Int: [String: Batch]] = [:]
    /// The last key of each record of a device.
    private var keys: [Int: [String: String]] = [:]

    /// Records a request; throws a Violation if it breaks the guarantee.
    mutating func record(_ key: String, _ records: [WireRecord], _ device: Int) throws {
        if let known = batches[device]?[key] {
            guard !known.isSplit else {
                throw Violation("parts", "batch \(key) came again after it had been split")
            }
            return
        }
        let ids = Set(records.map(\.id))
        for record in records {
            guard let before = keys[device]?[record.id], let batch = batches[device]?[before] else {
                continue
            }
            guard batch.records[record.id] == record.form else {
                throw Violation("parts", "\(record.id) of \(record.stream) came in another form")
            }
            guard ids.isSubset(of: batch.records.keys) else {
                throw Violation("parts", "batch \(key) is not a part of \(before)")
            }
            batches[device]?[before]?.isSplit = true
        }
        let forms = records.map { ($0.id, $0.form) }
        batches[device, default: [:]][key] = Batch(
            records: Dictionary(forms, uniquingKeysWith: { first, _ in first })
        )
        for id in ids { keys[device, default: [:]][id] = key }
    }

    /// Forgets a device whose history changed: its disk was rolled back or damaged, or a person
    /// resends records.
    mutating func forget(_ device: Int) {
        keys[device] = nil
        batches[device] = nil
    }
}
