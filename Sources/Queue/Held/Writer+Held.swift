// Holds sound that nobody has marked, and gives it to the uploader once somebody does.
import Host
import Records
import SQLite

extension WriterMemory {
    var isHolding: Bool { held.last > 0 }
}

extension Writer {
    private static let sound = Partition(.audio)

    /// Loads which chunks are held; to be called once the counters are there.
    func loadHeld() throws {
        memory.held = try ranges("held")
        memory.asked = try ranges("asked")
        let next = memory[Self.sound].next
        try requireIntact(
            max(memory.held.last, memory.asked.last) < next,
            "chunk \(memory.held.last) is held and \(next) is the next"
        )
        try requireIntact(
            memory[Self.sound].frozen.common(with: memory.held).isEmpty,
            "a chunk is held and in a batch"
        )
        try requireIntact(
            memory.asked.common(with: memory.held).isEmpty,
            "a chunk is held and asked for"
        )
        memory[Self.sound].frozen.insert(memory.held.ranges)
    }

    private func ranges(_ table: String) throws -> FrozenRanges {
        let rows = try connection.prepare("SELECT first, last FROM \(table)")
        return FrozenRanges(through: 0, try rows.compactMap { try $0.recordRange(0) })
    }

    /// Stores which chunks are held, as far as that changed; part of each commit.
    func storeHeld(since before: WriterMemory) throws {
        if !memory.isHolding { memory.numbers.heldBytes = 0 }
        invariant(memory.numbers.heldBytes >= 0, "held sound has bytes")
        try store(memory.held, before.held, "held")
        try store(memory.asked, before.asked, "asked")
    }

    private func store(_ ranges: FrozenRanges, _ before: FrozenRanges, _ table: String) throws {
        guard ranges != before else { return }
        mustHold(ranges.last < memory[Self.sound].next, "a held chunk is stored")
        invariant(
            memory.held.common(with: memory.asked).isEmpty,
            "a chunk that somebody asked for is not held"
        )
        let (new, old) = (Set(ranges.ranges), Set(before.ranges))
        for range in old.subtracting(new) {
            try connection.run("DELETE FROM \(table) WHERE first=?", range.lowerBound)
        }
        for range in new.subtracting(old) {
            let insert = "INSERT INTO \(table) VALUES (?,?)"
            try connection.run(insert, range.lowerBound, range.upperBound)
        }
    }

    /// Applies what of the sound is uploaded.
    ///
    /// Of all nothing stays held, and of none nothing stays pending. Marks are for as long as sound is marked.
    func soundChanged() throws {
        let mode = settings.sound.value.mode
        guard mode != .marked else { return }
        try begin()
        try connection.run("DELETE FROM marks")
        if mode == .all {
            try release(memory.held.ranges)
            memory.asked = FrozenRanges()
        } else {
            try hold(memory[Self.sound].free())
        }
    }

    /// Holds a new chunk, unless a mark wants it.
    func holdUnlessMarked(_ chunk: Int64) throws {
        let mode = settings.sound.value.mode
        guard mode != .all, let span = try span(of: chunk) else { return }
        let marks = mode == .none ? [] : try self.marks()
        let wanted = marks.filter { span.isWanted(by: $0, clockMap) }
        for mark in marks where span.isAfter(mark, clockMap) { try delete(mark) }
        guard wanted.isEmpty else {
            if wanted.allSatisfy(\.isOfPerson) { memory.asked.insert(chunk...chunk) }
            return
        }
        try hold([chunk...chunk])
    }

    /// Takes pending chunks, ascending, out of what is uploaded.
    private func hold(_ ranges: [ClosedRange<Int64>]) throws {
        guard !ranges.isEmpty else { return }
        mustHold(
            ranges.allSatisfy(memory[Self.sound].frozen.isPending),
            "only a pending chunk is held"
        )
        try move(ranges, sign: -1)
        memory.held.insert(ranges)
        memory[Self.sound].frozen.insert(ranges)
        memory.asked.remove(ranges)
    }

    /// Makes held chunks, ascending, pending.
    func release(_ ranges: [ClosedRange<Int64>]) throws {
        guard !ranges.isEmpty else { return }
        mustHold(
            FrozenRanges(through: 0, ranges).isPart(of: memory.held),
            "only a held chunk is released"
        )
        try move(ranges, sign: 1)
        memory.held.remove(ranges)
        memory[Self.sound].frozen.remove(ranges)
    }

    /// Moves the bytes of chunks from the held to the pending ones, or back.
    private func move(_ ranges: [ClosedRange<Int64>], sign: Int64) throws {
        let bytes = try ranges.reduce(0) { try $0 + storedBytes(Self.sound, $1) } * sign
        memory[Self.sound].pendingBytes = max(0, memory[Self.sound].pendingBytes + bytes)
        memory.numbers.heldBytes = max(0, memory.numbers.heldBytes - bytes)
    }

    /// Makes the newest held chunks pending, at most `count`; returns false if there are none.
    ///
    /// They go after what somebody has marked.
    package func releaseNewest(_ count: Int64) throws -> Bool {
        guard settings.sound.value.mode == .marked, let newest = memory.held.ranges.last else {
            return false
        }
        try begin()
        let range = max(newest.lowerBound, newest.upperBound - count + 1)...newest.upperBound
        memory.asked.insert(range)
        try release([range])
        return true
    }

    /// Evicts some of the oldest held chunks; returns false if there are none.
    func evictHeld() throws -> Bool {
        guard let oldest = memory.held.ranges.first else { return false }
        let range = oldest.lowerBound...(try step(Self.sound, oldest))
        mustHold(range.upperBound <= oldest.upperBound, "only held chunks are unmarked")
        try countGone(Self.sound, range, .unmarked)
        let bytes = try storedBytes(Self.sound, range)
        memory.numbers.heldBytes = max(0, memory.numbers.heldBytes - bytes)
        memory.held.remove(range)
        try remove(Self.sound, range)
        return true
    }

    private func span(of chunk: Int64) throws -> ChunkSpan? {
        var found: ChunkSpan?
        try forEachSpan(in: chunk...chunk) { span in
            found = span
            return true
        }
        return found
    }

    /// Calls `body` with the chunks of a range, the newest first, until it returns false.
    func forEachSpan(in range: ClosedRange<Int64>, _ body: (ChunkSpan) -> Bool) throws {
        let rows = try connection.prepare(
            """
            SELECT c.id, c.boot, c.frames*1000/max(1, r.rate), c.boottime, c.wall
            FROM chunks c JOIN runs r ON r.id=c.run WHERE c.id BETWEEN ? AND ? ORDER BY c.id DESC
            """,
            range.lowerBound,
            range.upperBound
        )
        while try rows.step() {
            let span = ChunkSpan(
                id: rows.required(0),
                boot: rows.required(1),
                start: rows.stamp(boottime: 3),
                length: rows.required(2)
            )
            if !body(span) { return }
        }
    }
}
