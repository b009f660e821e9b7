// What a server may expect of records that come under another key than before.

/// The batches that came to a server, and what their records looked like.
///
/// The promise: while nobody has judged a batch, it comes with the same bytes under the same key; or it is split, and then
/// each part holds records of that batch alone, each the very same JSON as before, dates included, and the old key does not
/// come again. So a server that keeps one record of each id has everything once, whatever it did with the whole batch.
struct SentBatches {
    private struct Batch {
        /// The form of each record, by its id.
        var records: [String: UInt64]
        /// Some of its records came under another key.
        var isSplit = false
    }

    /// By device, for a copy of a card sends what was pending under the same keys, and splits it at a time of its own.
    private var batches: [Int: [String: Batch]] = [:]
    /// The last key of each record of a device.
    private var keys: [Int: [String: String]] = [:]

    /// Notes a request; throws a Violation for one that breaks the promise.
    mutating func note(_ key: String, _ records: [WireRecord], _ device: Int) throws {
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

    /// A device has another past: its disk was rolled back or damaged, or a person sends records again.
    mutating func forget(_ device: Int) {
        keys[device] = nil
        batches[device] = nil
    }
}
