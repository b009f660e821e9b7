// Files in the runtime directory for losses that a gateway could not write to the database.
import Glibc
import Host
import Queue
import Records
import Status

/// Reads and writes a file with one line per loss.
///
/// A line holds the stream's number, the kind, the records, both clocks of the first and last
/// record, and the start of the program and the number of the commit that was to record the loss.
enum PendingLossFile {
    private static let fileName = "losses-not-entered"

    struct Waiting {
        var loss: Loss
        /// The commit that may have recorded the loss; nil if none can have.
        var turn: LossTransactionID?
    }

    /// Replaces the file with these losses.
    ///
    /// They include those of an earlier gateway, because its successor has read them.
    static func keep(_ losses: [Waiting], in directory: String, bootID: String) {
        guard !losses.isEmpty else { return remove(in: directory) }
        let lines = losses.map { waiting in
            let loss = waiting.loss
            let times = [loss.from, loss.to].flatMap {
                [$0.boot.nanoseconds, $0.wall.milliseconds]
            }
            let turn = waiting.turn.map { [$0.started.nanoseconds, $0.number] } ?? []
            return "\(loss.stream.number) \(loss.kind.rawValue) \(loss.records) "
                + (times + turn).map { "\($0)" }.joined(separator: " ")
        }
        let text = ([bootID] + lines).joined(separator: "\n") + "\n"
        Snapshot.write(Array(text.utf8), to: directory, as: fileName)
    }

    /// Returns the losses that an earlier gateway of this boot left behind.
    ///
    /// Call `remove` once they are in the ledger.
    static func found(in directory: String, bootID: String, _ streams: StreamList) -> [Waiting] {
        losses(read(directory, bootID), bootID, streams)
    }

    private static func losses(
        _ lines: [String],
        _ bootID: String,
        _ streams: StreamList
    ) -> [Waiting] {
        lines.compactMap { line in
            let parts = line.split(separator: " ")
            let numbers = parts.map { Int64($0) ?? -1 }
            guard [7, 9].contains(parts.count), let kind = LossKind(rawValue: String(parts[1])),
                let stream = streams[number: Int(numbers[0])]?.stream
            else { return nil }
            let (from, to) = (stamp(numbers[3...4]), stamp(numbers[5...6]))
            var waiting = Waiting(loss: Loss(kind, stream, records: numbers[2], from: from, to: to))
            if parts.count == 9 {
                let started = BootInstant(nanoseconds: numbers[7])
                waiting.turn =
                    LossTransactionID(bootID: bootID, started: started, number: numbers[8])
            }
            return waiting
        }
    }

    static func remove(in directory: String) { unlink("\(directory)/\(fileName)") }

    // MARK: While the writer hangs, or the disk rejects writes

    private static let inFlightName = "records-in-flight"

    struct InFlight {
        var records: RecordsInFlight
        var from: Stamp
        var to: Stamp
    }

    /// Replaces the file of records in flight.
    ///
    /// It has one line per stream: the stream's number, the newest committed record, how many came
    /// since, and both clocks of `from` and `to`.
    static func keep(
        inFlight records: [RecordsInFlight],
        from: Stamp,
        to: Stamp,
        in directory: String,
        bootID: String
    ) {
        guard !records.isEmpty else { return removeInFlight(in: directory) }
        let times = [from, to].map { "\($0.boot.nanoseconds) \($0.wall.milliseconds)" }
        let lines = records.map {
            "\($0.stream.number) \($0.after) \($0.count) \(times[0]) \(times[1])"
        }
        let text = ([bootID] + lines).joined(separator: "\n") + "\n"
        Snapshot.write(Array(text.utf8), to: directory, as: inFlightName)
    }

    /// Returns the records that an earlier gateway of this boot accepted and may not have written.
    static func inFlight(
        in directory: String,
        bootID: String,
        _ streams: StreamList
    ) -> [InFlight] {
        inFlight(read(directory, bootID, inFlightName), streams)
    }

    private static func inFlight(_ lines: [String], _ streams: StreamList) -> [InFlight] {
        lines.compactMap { line in
            let numbers = line.split(separator: " ").compactMap { Int64($0) }
            guard numbers.count == 7, let number = Int(exactly: numbers[0]),
                let stream = streams[number: number]?.stream, numbers[2] > 0
            else { return nil }
            let records = RecordsInFlight(stream: stream, after: numbers[1], count: numbers[2])
            let (from, to) = (stamp(numbers[3...4]), stamp(numbers[5...6]))
            return InFlight(records: records, from: from, to: to)
        }
    }

    static func removeInFlight(in directory: String) { unlink("\(directory)/\(inFlightName)") }

    // MARK: Across a reboot

    /// The losses and records in flight in one file of an earlier boot.
    struct LeftBehind {
        var path: String
        var name: String
        var bootID: String
        var losses: [Waiting] = []
        var inFlight: [InFlight] = []
    }

    /// Reads the files of other boots, `losses-not-entered.BOOT` and `records-in-flight.BOOT`.
    ///
    /// The runtime directory does not survive a reboot: on a card, waypost-keep copies them
    /// (deploy/card).
    static func ofOtherBoots(in directory: String, _ streams: StreamList) -> [LeftBehind] {
        names(inFolder: directory).sorted().compactMap { leftBehind(directory, $0, streams) }
    }

    private static func leftBehind(
        _ directory: String,
        _ file: String,
        _ streams: StreamList
    ) -> LeftBehind? {
        guard let dot = file.firstIndex(of: ".") else { return nil }
        let (name, bootID) = (file[..<dot], String(file[file.index(after: dot)...]))
        guard name == fileName || name == inFlightName else { return nil }
        let lines = read(directory, bootID, file)
        guard !lines.isEmpty else { return nil }
        var left = LeftBehind(path: "\(directory)/\(file)", name: file, bootID: bootID)
        if name == fileName {
            left.losses = losses(lines, bootID, streams)
        } else {
            left.inFlight = inFlight(lines, streams)
        }
        return left
    }

    private static func stamp(_ numbers: ArraySlice<Int64>) -> Stamp {
        let (boot, wall) = (numbers.first ?? 0, numbers.last ?? 0)
        return Stamp(
            boot: BootInstant(nanoseconds: boot),
            wall: WallTime(milliseconds: wall)
        )
    }

    private static func read(
        _ directory: String,
        _ bootID: String,
        _ name: String = fileName
    ) -> [String] {
        let text = SmallText.read("\(directory)/\(name)") ?? ""
        let lines = text.split(separator: "\n").map { String($0) }
        return lines.first == bootID ? Array(lines.dropFirst()) : []
    }
}
