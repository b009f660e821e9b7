// The state of a database as of its last successful commit.
import Host
import Records
import SQLite

/// The next numbers and ledger sums of a database as of its last successful commit.
///
/// A commit that reported failure may still reach the disk if only its fsync failed. Its records
/// are still in memory. If the database is then quarantined, they go into the next one and must not
/// be uploaded from the old one as well. So the old one counts only up to this watermark.
struct CommitMark: Sendable, Equatable {
    /// The next record number of each stream, by stream name.
    var next: [String: Int64] = [:]
    /// Records in the ledger, by `name`.
    var entered: [String: Int64] = [:]
    /// The run whose last segments were not in a chunk yet.
    var run: Int64 = 0
    /// Those segments.
    var tail: Range<Int64> = 0..<0

    /// The suffix of its file, which lies next to the quarantined database.
    static let suffix = "-mark"

    /// Marks that ledger sums follow; never a valid stream name.
    private static let ledger = "/"

    /// The key of a ledger sum.
    static func name(_ stream: Stream, _ kind: LossKind) -> String {
        stream.name + ledger + kind.rawValue
    }

    init(_ memory: WriterMemory) {
        for stream in memory.streams.streams {
            next[stream.name] = memory[Partition(stream)].next
        }
        entered = memory.entered
        guard let run = memory.chunker.run, let first = memory.chunker.firstUnchunked else {
            return
        }
        self.run = run.id
        tail = first..<max(first, memory.numbers.segments)
    }

    /// Reads the mark next to a database; nil if there is none.
    ///
    /// Throws if it exists but cannot be read now. A partly written mark is ignored: the process
    /// ended before it wrote to the next database, so every commit on disk counts.
    init?(of path: String, _ disk: any QueueDisk) throws {
        let bytes = try disk.read(path + Self.suffix, at: 0, count: 1 << 20)
        self.init(String(decoding: bytes, as: UTF8.self))
    }

    /// Reads what `text` wrote; nil for anything else.
    ///
    /// A bit that the disk changed is in one of its two lines.
    init?(_ text: String) {
        let lines = text.split(separator: "\n").map { String($0) }
        guard let intact = lines.compactMap(Self.checked).first else { return nil }
        self.init(line: intact)
    }

    /// Returns a line without its checksum; nil if the checksum is wrong or missing.
    private static func checked(_ line: String) -> String? {
        let words = line.split(separator: " ")
        guard words.count > 1, let sum = words.last.flatMap({ Int64($0) }) else { return nil }
        let rest = words.dropLast().joined(separator: " ")
        return Checksum.of(Array(rest.utf8)) == sum ? rest : nil
    }

    private init?(line: String) {
        let words = line.split(separator: " ")
        guard words.count >= 4, words.last == "end", let run = Int64(words[0]),
            let first = Int64(words[1]),
            let end = Int64(words[2]), first <= end
        else { return nil }
        self.run = run
        tail = first..<end
        for word in words.dropFirst(3).dropLast() {
            let parts = word.split(separator: "=")
            guard parts.count == 2, let number = Int64(parts[1]) else { return nil }
            next[String(parts[0])] = number
        }
        entered = next.filter { $0.key.contains(text: Self.ledger) }
        next = next.filter { !$0.key.contains(text: Self.ledger) }
    }

    /// One line with its checksum, twice; two newlines in between, in case one is damaged.
    var text: String {
        let sums = next.merging(entered) { $1 }
        let streams = sums.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let words = ["\(run)", "\(tail.lowerBound)", "\(tail.upperBound)"] + streams + ["end"]
        let line = words.joined(separator: " ")
        let checked = "\(line) \(Checksum.of(Array(line.utf8)))\n"
        assert(Self(line: line) == self, "a mark is read as it was written")
        return "\(checked)\n\(checked)"
    }
}
