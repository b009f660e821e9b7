// Sound that nobody has marked: what was not marked never arrives, and what was marked is not held.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk
internal import SQLite

/// A mark as the world knows it.
struct KnownMark {
    /// The boot whose boot time it is in; nil: it is in wall time.
    var boot: Int?
    /// First and last ms.
    var first: Int64
    var last: Int64

    /// Whether a chunk of the given times may be of it, by any clock that a device had.
    func mayWant(_ chunk: ClosedRange<Int64>, in boot: Int) -> Bool {
        (self.boot ?? boot) == boot && chunk.overlaps(first...last)
    }
}

extension World {
    static let margin = Duration.seconds(3)

    /// The settings of the sound of a device.
    var heldSound: SoundUpload {
        SoundUpload(
            plan.holdsSound ? .marked : .all,
            markingStreams: ["weather"],
            margin: Self.margin
        )
    }

    /// Returns the mark of a record of a marking stream; nil if it marks nothing.
    func mark(of record: Known, stream name: String) -> KnownMark? {
        guard plan.holdsSound, name == "weather" else { return nil }
        let (moment, margin) = (record.given ?? record.boottime, Self.margin.milliseconds)
        let boot = record.given == nil ? record.boot : nil
        return KnownMark(boot: boot, first: moment - margin, last: moment + margin)
    }

    /// A person asks for the sound of some time, which may not be over.
    func markSound(_ device: Device, _ chance: inout Chance) {
        guard plan.holdsSound, let queue = device.queue else { return }
        let first = now - Int64(chance.scale(0...600_000))
        let last = first + Int64(chance.scale(1...60_000))
        marks.append(KnownMark(boot: nil, first: first, last: last))
        log?("  mark \(first)...\(last)")
        _ = try? queue.perform {
            try $0.markSound(from: WallTime(milliseconds: first), to: WallTime(milliseconds: last))
        }
    }

    /// Checks what a device holds, by its tables.
    func checkHeld(_ device: Device, _ presence: Presence) throws {
        let account = device.account
        guard plan.holdsSound, let queue = device.queue, queue.isAllOnDisk, !account.isDamaged,
            !account.isGarbled, !account.hasFailedSync, !account.hasFailedWrite
        else { return }
        let held = try view.look(at: device.disk) { try HeldChunks($0.connection) }
        // Marks stay in a quarantined database.
        guard !account.wasSetAside, queue.setAside.isEmpty else { return }
        for (boot, span) in held.spans {
            guard let number = truth.boots.lastIndex(where: { $0.name == boot }) else { continue }
            let mark = account.marks.first {
                // At its ends a millisecond is not known.
                $0.boot == number && $0.first + 1 < span.upperBound && $0.last > span.lowerBound + 1
            }
            guard let mark else { continue }
            throw Violation("marked and held", "device \(device.number): \(mark), \(boot) \(span)")
        }
    }

    /// Checks that each chunk at the server was marked.
    func checkMarked() throws {
        guard plan.holdsSound, !server.isGarbled else { return }
        for (chunk, segments) in Dictionary(
            grouping: server.chunkOfSegment.keys,
            by: { server.chunkOfSegment[$0] ?? "" }
        ) {
            let own = segments.map { truth.segments[$0] }
            // Those that it shares with the chunk before; a run may have paused between them.
            let first = own.map(\.index).min() ?? 0
            let shared = truth.segments.filter {
                $0.run == own[0].run && (first - own[0].overlap..<first).contains($0.index)
            }
            let known = shared + own
            guard let boot = known.first?.boot else { continue }
            func span(_ time: (KnownSegment) -> Int64, _ around: Int64) -> ClosedRange<Int64> {
                let times = known.map(time)
                return ((times.min() ?? 0) - around)...((times.max() ?? 0) + 2000 + around)
            }
            // A time that is corrected later may be off by the clock's drift.
            let bound = truth.bound(boot, known[0].boottime) ?? 0
            guard bound < 86_400_000 else { continue }
            let times = [span(\.wall, 0), span(\.truth, bound)]
            let isMarked = marks.contains { mark in
                mark.boot == nil
                    ? times.contains { mark.mayWant($0, in: boot) }
                    : mark.mayWant(span(\.boottime, 0), in: boot)
            }
            guard !isMarked else { continue }
            throw Violation("not marked", "chunk \(chunk): \(known), marks \(marks.suffix(9))")
        }
    }
}

/// The held chunks in a database, read without the gateway's code.
private struct HeldChunks {
    /// The boot of each, and its boot time in ms.
    var spans: [(boot: String, span: Range<Int64>)] = []

    init(_ live: borrowing Connection) throws {
        let rows = try live.prepare(
            """
            SELECT b.boot_id, c.boottime, c.frames*1000/r.rate FROM held h
            JOIN chunks c ON c.id BETWEEN h.first AND h.last JOIN runs r ON r.id=c.run
            LEFT JOIN boots b ON b.id=c.boot
            """
        )
        while try rows.step() {
            let start = rows.required(1)
            spans.append((rows.text(0), start..<(start + rows.required(2))))
        }
    }
}

extension Plan {
    /// Sound and marks in any order, and little room; draws nothing that the rest depends on.
    mutating func addHeldSound() {
        holdsSound = true
        var chance = Chance(seed ^ 0x4E1D)
        // Held sound, and then more records than there is room for.
        let shortage: [Step.Kind] =
            [.faultsEnd, .clockSync, .outage, .soundStart, .sound, .soundEnd]
            + Array(repeating: .put, count: 24) + [.shrink, .health, .good, .sync]
        insert(shortage, amounts: 20...40, &chance)
        let kinds: [Step.Kind] = [
            .soundStart, .sound, .sound, .sound, .put, .put, .mark, .soundEnd, .sync, .kill,
            .reboot,
            .powerCut, .clockSync, .clockStep, .shrink, .health,
        ]
        for _ in 0..<chance.number(20...60) {
            let step = Step(
                chance.one(of: kinds),
                amount: chance.scale(0...40),
                draw: chance.next()
            )
            steps.insert(step, at: chance.number(0...steps.count))
        }
    }
}
