// The jobs that were begun or answered, so that each is done at most once.
import Queue

/// The newest jobs by their ids, each stored as a memo of the queue.
///
/// Bounded: ever new ids push out the oldest ones. A server lists 64 open jobs at most, so an id
/// that is pushed out belongs to a job that has been answered.
struct JobHistory {
    static let limit: Int64 = 256
    /// A memo with a higher number is damaged.
    private static let highest: Int64 = 1 << 50

    struct Entry: Equatable {
        /// Counts the jobs; its memo has the place `number % limit`.
        var number: Int64
        /// False: it was begun, may have been done, and was not answered.
        var isAnswered: Bool
        var kind: String
        var id: String

        var memo: String { "job \(number % JobHistory.limit)" }
        var text: String { "\(number) \(isAnswered ? "answered" : "begun") \(kind) \(id)" }
    }

    private var entries: [String: Entry] = [:]
    private var newest: Int64 = 0

    /// Reads the stored memos.
    init(_ stored: (String) -> String?) {
        for place in 0..<Self.limit {
            let words = stored("job \(place)")?.split(separator: " ", maxSplits: 3).map { "\($0)" }
            guard let words, words.count == 4, let number = Int64(words[0]),
                (0...Self.highest).contains(number)
            else { continue }
            let isAnswered = words[1] != "begun"
            record(Entry(number: number, isAnswered: isAnswered, kind: words[2], id: words[3]))
        }
    }

    func contains(_ id: String) -> Bool { entries[id] != nil }

    /// The jobs that were begun and not answered, in their order.
    var interrupted: [Entry] {
        entries.values.filter { !$0.isAnswered }.sorted { $0.number < $1.number }
    }

    /// Returns the entry of a job that begins.
    func next(_ job: RemoteJob) -> Entry {
        // The kinds that are done are one word.
        let kind = job.kind.contains(" ") || job.kind.isEmpty ? "-" : job.kind
        return Entry(number: newest + 1, isAnswered: false, kind: kind, id: job.id)
    }

    /// Returns the entry of a job that was begun, which may be so long ago that it is forgotten.
    func entry(of id: String, _ kind: String) -> Entry {
        entries[id] ?? Entry(number: newest + 1, isAnswered: false, kind: kind, id: id)
    }

    /// Takes an entry that has been stored.
    mutating func record(_ entry: Entry) {
        newest = max(newest, entry.number)
        entries[entry.id] = entry
        entries = entries.filter { $0.value.number > newest - Self.limit }
    }
}
