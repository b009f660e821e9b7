// How far a database was when its last commit succeeded.
internal import Streams

/// What a database had given out at the last commit that was told as done.
///
/// A commit that is told as failed may be on the disk all the same: its write went through, and only the wait for
/// the disk did not. Its records are still held in memory. When the database is set aside before they are written
/// again, they go into the next one, and must not go out of the old one, too: the old one counts up to here.
struct CommitMark: Sendable, Equatable {
    /// The next record of each stream, by the name of the stream.
    var next: [String: Int64] = [:]
    /// The run whose last segments were in no chunk yet.
    var run: Int64 = 0
    /// Those segments.
    var tail: Range<Int64> = 0..<0

    /// The name of the memo that keeps it for a database that was set aside.
    static func memo(of file: String) -> String { memoPrefix + file }
    static let memoPrefix = "committed "

    init(_ memory: WriterMemory) {
        for stream in memory.streams.streams {
            next[stream.name] = memory[Partition(stream)].next
        }
        guard let run = memory.chunker.run, let first = memory.chunker.firstUnchunked else {
            return
        }
        self.run = run.id
        tail = first..<max(first, memory.numbers.segments)
    }

    /// Reads what `text` wrote; nil for anything else.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count >= 3, let run = Int64(words[0]), let first = Int64(words[1]),
            let end = Int64(words[2]), first <= end
        else { return nil }
        self.run = run
        tail = first..<end
        for word in words.dropFirst(3) {
            let parts = word.split(separator: "=")
            guard parts.count == 2, let number = Int64(parts[1]) else { return nil }
            next[String(parts[0])] = number
        }
    }

    var text: String {
        let streams = next.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return (["\(run)", "\(tail.lowerBound)", "\(tail.upperBound)"] + streams)
            .joined(separator: " ")
    }
}
