// Marks: spans of time whose sound is wanted, from records of the user's streams and from people.
package import Host
import Records
import SQLite

extension Writer {
    /// The longest chunk in ms (waypost.toml(5), audio.chunk).
    private static let longestChunk: Int64 = 600_000
    /// The most marks that are kept of people, and of records.
    private static let (mostOfPeople, mostOfRecords) = (64, 256)

    /// Marks sound that a person asks for; returns how many held chunks are pending now.
    ///
    /// The mark holds for sound that is recorded later, too. Throws `SoundMarkError` if no sound is uploaded, or too
    /// much is asked for.
    package func markSound(from: WallTime, to: WallTime) throws -> Int {
        switch settings.sound.value.mode {
        case .all: return 0
        case .none: throw SoundMarkError.isNotUploaded
        case .marked: break
        }
        let mark = SoundMark(from: from, to: to)
        // No chunk of it is being recorded, and the clock was put right long ago (`ClockMap`).
        let isOver = memory.bootIsSynced && to + .seconds(3600) < rightTime
        let others = try marks().filter { $0.isOfPerson && !$0.touches(mark) }
        guard isOver || others.count < Self.mostOfPeople else { throw SoundMarkError.tooMany }
        try begin()
        if !isOver { try keep(mark) }
        return try apply([mark])
    }

    /// Marks the sound around a record if its stream is one that marks.
    func markSound(around row: PlainRow) throws {
        let sound = settings.sound.value
        guard sound.mode == .marked, sound.markingStreams.contains(row.stream.name) else { return }
        var mark = SoundMark(row.stamp.boot.milliseconds, boot: boot, margin: sound.margin)
        // Of sound that may still come: a program may say any time.
        var isNear = true
        if case .integer(let given) = row.values.first {
            mark = SoundMark(given, boot: 0, margin: sound.margin)
            let now = [row.stamp.wall, clockMap.resolve(row.stamp, boot: boot).wall]
            let near = 2 * Self.longestChunk + sound.margin.milliseconds
            isNear = now.contains { ($0.milliseconds &- given).magnitude < UInt64(near) }
        }
        try begin()
        if isNear { try keep(mark) }
        _ = try apply([mark])
    }

    /// Applies the marks in wall time again: earlier chunks of this boot have other times now.
    func applyMarksInWallTime() throws { _ = try apply(try marks().filter { $0.boot == 0 }) }

    /// Makes the held chunks of some marks pending, in one pass; returns how many.
    private func apply(_ marks: [SoundMark]) throws -> Int {
        let waiting = (memory.held.ranges + memory.asked.ranges)
        guard let first = waiting.map(\.lowerBound).min(),
            let last = waiting.map(\.upperBound).max(),
            !marks.isEmpty
        else { return 0 }
        var (ofPeople, ofRecords): ([ClosedRange<Int64>], [ClosedRange<Int64>]) = ([], [])
        try forEachSpan(in: first...last) { span in
            let wanted = marks.filter { span.isWanted(by: $0, clockMap) }
            if wanted.contains(where: \.isOfPerson) { ofPeople.append(span.id...span.id) }
            if wanted.contains(where: { !$0.isOfPerson }) { ofRecords.append(span.id...span.id) }
            return marks.contains { mayBeWanted(before: span, by: $0) }
        }
        let people = FrozenRanges(through: 0, ofPeople)
        let records = FrozenRanges(through: 0, ofRecords)
        let asked = memory.held.common(with: people)
        let detected = memory.held.common(with: records)
        memory.asked.insert(asked)
        memory.asked.remove(records.ranges)
        let released = FrozenRanges(through: 0, asked + detected).ranges
        try release(released)
        return released.reduce(0) { $0 + $1.count }
    }

    /// Whether chunks before one may be of a mark: a record marks only sound of its boot, and a search that ends
    /// early costs the same however much is held.
    private func mayBeWanted(before span: ChunkSpan, by mark: SoundMark) -> Bool {
        guard !mark.isOfPerson else { return true }
        let first = mark.first &- Self.longestChunk
        if mark.boot != 0 { return (span.boot, span.start.boot.milliseconds) >= (mark.boot, first) }
        let (wall, quality) = clockMap.resolve(span.start, boot: span.boot)
        let time = quality == .unsynced ? span.start.wall : wall
        return span.boot == boot && time.milliseconds >= first
    }

    // MARK: The table

    func marks() throws -> [SoundMark] {
        try connection.prepare("SELECT boot, first, last, kind FROM marks").compactMap {
            SoundMark($0)
        }
    }

    /// Stores a mark; those that touch it become one with it, so that a chorus is one row.
    ///
    /// So do all of records once there are many: rather too much sound than too many marks.
    private func keep(_ mark: SoundMark) throws {
        let others = try marks().filter { $0.boot == mark.boot && $0.isOfPerson == mark.isOfPerson }
        let isFull = !mark.isOfPerson && others.count >= Self.mostOfRecords
        var mark = mark
        for other in others where isFull || other.touches(mark) {
            mark.first = min(mark.first, other.first)
            mark.last = max(mark.last, other.last)
            try delete(other)
        }
        // While nothing is recorded, only the last one may be of sound to come.
        for other in others where chunker.run == nil && mark.boot != 0 && other.last < mark.first {
            try delete(other)
        }
        invariant(mark.first <= mark.last, "a mark ends after it begins")
        let insert = "INSERT INTO marks(boot, first, last, kind) VALUES (?,?,?,?)"
        try connection.run(insert, mark.boot, mark.first, mark.last, mark.isOfPerson ? 1 : 0)
    }

    func delete(_ mark: SoundMark) throws {
        try connection.run(
            "DELETE FROM marks WHERE boot=? AND first=? AND last=? AND kind=?",
            mark.boot,
            mark.first,
            mark.last,
            mark.isOfPerson ? 1 : 0
        )
    }
}

/// Why sound that a person asks for cannot be marked.
package enum SoundMarkError: Error, CustomStringConvertible {
    case isNotUploaded
    case tooMany

    package var description: String {
        switch self {
        case .isNotUploaded:
            "no sound is uploaded: audio.upload is \"none\"; set it to \"marked\""
        case .tooMany: "64 spans that are not over are marked already; ask again later"
        }
    }
}
