// Keeps the numbers of user streams the same across databases.
import Host
import Records
import SQLite

extension Writer {
    /// Returns the stream numbers of earlier databases; empty if this one has user streams.
    ///
    /// Records in memory and in quarantined databases refer to their stream by number.
    func numbersBefore(_ known: [String: Int]) throws -> [String: Int] {
        let first = Int64(Stream.firstOfUser)
        let own = try connection.integer(
            "SELECT 1 FROM sequences WHERE database=0 AND stream>=? LIMIT 1",
            first
        )
        guard own == nil else { return [:] }
        var numbers = known
        for path in DatabaseFile.setAside(settings).reversed() {
            guard let file = try? Reader(settings, damaged: path, .isOver) else { continue }
            for partition in (try? file.partitions()) ?? [] {
                let stream = partition.stream
                let isTaken = numbers.values.contains(stream.number)
                guard isOfUser(stream), numbers[stream.name] == nil, !isTaken else { continue }
                numbers[stream.name] = stream.number
            }
        }
        return numbers
    }

    /// Returns the live stream with the name of one in an older database; numbers may differ.
    ///
    /// Returns nil, and declares nothing, if damage left an invalid name or number.
    func claim(_ stream: Stream) throws -> Stream? {
        guard isOfUser(stream) else { return streams[number: stream.number]?.stream }
        let isName = stream.name.utf8.allSatisfy {
            (97...122).contains($0) || $0.isDigit || $0 == 95
        }
        guard isName, !stream.name.isEmpty else { return nil }
        if let live = streams[name: stream.name] { return live.isOfUser ? live.stream : nil }
        let user = (streams.kinds.filter { isOfUser($0.stream) })
            .map { DeclaredStream(name: $0.stream.name, wire: $0.wire) }
        let new = DeclaredStream(name: stream.name, wire: stream.name)
        // Keeps its old number if that is free.
        try declare(user: user + [new], numbers: [stream.name: stream.number])
        return streams[name: stream.name]?.stream
    }

    /// Throws damage for a number in the live database that does not belong to any stream.
    func check(_ stream: Stream) throws {
        let isKnown = StreamList(with: settings.moreStreams)[number: stream.number] != nil
        try requireIntact(
            isOfUser(stream) || isKnown,
            "\(stream.number) is not a stream number"
        )
    }

    private func isOfUser(_ stream: Stream) -> Bool {
        (Stream.firstOfUser...Stream.last).contains(stream.number)
            && !settings.moreStreams.contains { $0.stream == stream }
    }
}
