// What a server may expect of records that come under another key than before.

/// The batches that came to a server, and what their records looked like.
///
/// The promise: while nobody has judged a batch, it comes with the same bytes under the same key; or it is split, and then
/// each part holds records of that batch alone, each the very same JSON as before, dates included, and the old key does not
/// come again. So a server that keeps one record of each id has everything once, whatever it did with the whole batch.
struct SentBatches {
    private struct Batch {
        var device: Int
        /// The form of each record, by its id.
        var records: [String: UInt64]
        /// Some of its records came under another key.
        var isSplit = false
    }

    private var batches: [String: Batch] = [:]
    /// The last key of each record of a device.
    private var keys: [Int: [String: String]] = [:]

    /// Notes a request; throws a Violation for one that breaks the promise.
    mutating func note(_ key: String, _ records: [WireRecord], _ device: Int) throws {
        if let known = batches[key] {
            guard !known.isSplit else {
                throw Violation("parts", "batch \(key) came again after it had been split")
            }
            return
        }
        let ids = Set(records.map(\.id))
        for record in records {
            guard let before = keys[device]?[record.id], let batch = batches[before] else {
                continue
            }
            guard batch.records[record.id] == record.form else {
                throw Violation("parts", "\(record.id) of \(record.stream) came in another form")
            }
            guard ids.isSubset(of: batch.records.keys) else {
                throw Violation("parts", "batch \(key) is not a part of \(before)")
            }
            batches[before]?.isSplit = true
        }
        let forms = records.map { ($0.id, $0.form) }
        batches[key] = Batch(
            device: device,
            records: Dictionary(forms, uniquingKeysWith: { first, _ in first })
        )
        for id in ids { keys[device, default: [:]][id] = key }
    }

    /// A device has another past: its disk was rolled back or damaged, or a person sends records again.
    mutating func forget(_ device: Int) {
        keys[device] = nil
        batches = batches.filter { $0.value.device != device }
    }
}
