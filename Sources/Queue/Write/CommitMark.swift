// How far a database was when its last commit succeeded.
import Host
import Records
import SQLite

/// The next numbers, and the sums of the ledger, of a database as of its last commit that succeeded.
///
/// A commit that is told as failed may be on the disk all the same: its write went through, and only the wait for
/// the disk did not. Its records are still held in memory. When the database is set aside before they are written
/// again, they go into the next one, and must not go out of the old one, too: the old one counts up to here.
struct CommitMark: Sendable, Equatable {
    /// The next record of each stream, by the name of the stream.
    var next: [String: Int64] = [:]
    /// Records in the ledger, by `name`.
    var entered: [String: Int64] = [:]
    /// The run whose last segments were in no chunk yet.
    var run: Int64 = 0
    /// Those segments.
    var tail: Range<Int64> = 0..<0

    /// What the name of its file ends in; it lies beside the database that was set aside.
    static let suffix = "-mark"

    /// Stands in the name of each sum of the ledger, and in no name of a stream.
    private static let ledger = "/"

    /// The name of a sum of the ledger.
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

    /// Reads what lies beside a database; nil where nothing does.
    ///
    /// Throws where it is there and cannot be read now. One that was not written to its end is of a program that ended
    /// before it wrote anything to the next database: then what landed counts.
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

    /// A line without its sum; nil where that is another one, or there is none.
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

    /// One line with its sum, twice; with two ends of lines between, one of which may change, too.
    var text: String {
        let sums = next.merging(entered) { $1 }
        let streams = sums.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let words = ["\(run)", "\(tail.lowerBound)", "\(tail.upperBound)"] + streams + ["end"]
        let line = words.joined(separator: " ")
        let checked = "\(line) \(Checksum.of(Array(line.utf8)))\n"
        return "\(checked)\n\(checked)"
    }
}
