// Losses that a stopped gateway could not enter, for its disk refused: they wait in the runtime directory.
internal import Host
internal import Queue
internal import Streams
internal import Glibc

/// A line a loss: number of its stream, kind, records, and both clocks of its first and last record.
enum UnenteredLosses {
    private static let fileName = "losses-not-entered"

    /// Adds to what is there: more than one stop may find the disk refusing.
    static func keep(_ losses: [Loss], in directory: String, bootID: String) {
        guard !losses.isEmpty else { return }
        let lines = losses.map { loss in
            let times = [loss.from, loss.to].flatMap {
                [$0.boot.nanoseconds, $0.wall.milliseconds]
            }
            return "\(loss.stream.number) \(loss.kind.rawValue) \(loss.records) "
                + times.map { "\($0)" }.joined(separator: " ")
        }
        let earlier = read(directory, bootID)
        let text = ([bootID] + earlier + lines).joined(separator: "\n") + "\n"
        Snapshot.write(Array(text.utf8), to: directory, as: fileName)
    }

    /// Those that a gateway of this boot left behind.
    ///
    /// `remove` the file once they are in the ledger.
    static func found(in directory: String, bootID: String, _ streams: StreamList) -> [Loss] {
        read(directory, bootID).compactMap { line in
            let parts = line.split(separator: " ")
            let numbers = parts.map { Int64($0) ?? -1 }
            guard parts.count == 7, let kind = LossKind(rawValue: String(parts[1])),
                let stream = streams[number: Int(numbers[0])]?.stream
            else { return nil }
            func stamp(_ index: Int) -> Stamp {
                Stamp(
                    boot: BootInstant(nanoseconds: numbers[index]),
                    wall: WallTime(milliseconds: numbers[index + 1])
                )
            }
            return Loss(kind, stream, records: numbers[2], from: stamp(3), to: stamp(5))
        }
    }

    static func remove(in directory: String) { unlink("\(directory)/\(fileName)") }

    private static func read(_ directory: String, _ bootID: String) -> [String] {
        let text = SmallText.read("\(directory)/\(fileName)") ?? ""
        let lines = text.split(separator: "\n").map { String($0) }
        return lines.first == bootID ? Array(lines.dropFirst()) : []
    }
}
