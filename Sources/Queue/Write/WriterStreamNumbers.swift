// The writer's part for numbers of the user's streams across databases: a number means one stream in all of them.
import Host
import Records
import SQLite

extension Writer {
    /// The numbers that streams had before this database; none once it has streams of the user itself.
    ///
    /// Records in memory, and those of databases that were set aside, name their stream by it.
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

    /// The live stream that has the name of one in an older database, which may have another number there.
    ///
    /// nil for what damage left of a name or of a number: it declares nothing.
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
        // Its own number, unless that is taken.
        try declare(user: user + [new], numbers: [stream.name: stream.number])
        return streams[name: stream.name]?.stream
    }

    /// Throws damage for a number of the live database that no stream has.
    func check(_ stream: Stream) throws {
        guard !isOfUser(stream),
            StreamList(with: settings.moreStreams)[number: stream.number] == nil
        else { return }
        let message = "\(stream.number) is no stream"
        throw SQLiteError(code: 11, message: message, statement: "")
    }

    private func isOfUser(_ stream: Stream) -> Bool {
        (Stream.firstOfUser...Stream.last).contains(stream.number)
            && !settings.moreStreams.contains { $0.stream == stream }
    }
}
