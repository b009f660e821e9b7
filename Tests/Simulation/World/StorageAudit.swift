// Checks the order in which a device deletes records, and its retention.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk

/// The known state of one device's storage from step to step.
struct StorageAudit {
    private var before: Holdings?
    private var step = -1
    /// The program start that was observed: another one may use a disk that was rolled back.
    private var start = 0
    private var lookedAt: Int64 = 0
    private var hadRoom = false
    /// The earliest possible upload time of each batch (ms since 1970); none if the batch was first
    /// seen uploaded.
    private var earliest: [String: Int64] = [:]

    /// Steps in which no record arrives, none is uploaded, and no person deletes one.
    private static let quiet: Set<Step.Kind> = [
        .wait, .health, .limits, .shrink, .maintain, .squeeze, .clockSync, .clockRight, .clockNote,
    ]
    private static let recording: Set<Step.Kind> = [.soundStart, .sound, .soundHole, .soundEnd]
    /// Steps after which a record may be deleted without an eviction, or be pending again.
    private static let moving: Set<Step.Kind> = [.sync, .requeue, .drop]

    /// Forgets the observations: the next check begins again.
    mutating func forget() { before = nil }

    /// Compares the holdings with those after the previous step.
    mutating func look(
        _ now: Holdings,
        after kind: Step.Kind,
        number: Int,
        of device: Device,
        at time: Int64,
        retention: Int64
    ) throws {
        let hasRoom = device.limits.maxSize >= 1 << 30 && device.disk.capacity == nil
        if let before, start == device.starts {
            if hasRoom, hadRoom { try checkRetention(before, now, time, retention) }
            if step == number - 1, !Self.moving.contains(kind) {
                let hasSound = Self.recording.contains(kind)
                try checkOrder(before, now, isQuiet: Self.quiet.contains(kind), hasSound: hasSound)
            }
            if step == number - 1 { try checkPurpose(before, now, device) }
        }
        // A new boot begins with some seconds of boot time, which count.
        let known = start == device.starts ? earliest : earliest.mapValues { $0 - 20_000 }
        earliest = [:]
        for key in now.uploaded.keys {
            let isNew = start == device.starts && before.map { $0.uploaded[key] == nil } ?? false
            earliest[key] = known[key] ?? (isNew ? lookedAt : nil)
        }
        (before, step, start, lookedAt, hadRoom) = (now, number, device.starts, time, hasRoom)
    }

    /// Checks that uploaded records stay for their retention while there is room.
    private func checkRetention(
        _ before: Holdings,
        _ now: Holdings,
        _ time: Int64,
        _ retention: Int64
    ) throws {
        for (key, records) in before.uploaded where now.uploaded[key] ?? 0 < records {
            guard let earliest = earliest[key], time - earliest < retention else { continue }
            throw Violation(
                "purged early",
                "batch \(key), uploaded at most \(time - earliest) ms ago, kept for \(retention)"
            )
        }
    }

    /// Checks the eviction order: uploaded records, then quarantined ones, then the oldest pending
    /// of the largest stream.
    private func checkOrder(_ before: Holdings, _ now: Holdings, isQuiet: Bool, hasSound: Bool)
        throws
    {
        for (stream, evicted) in now.evicted {
            let gone = evicted - (before.evicted[stream] ?? 0)
            let held = (before.quarantined[stream] ?? 0) - (now.quarantined[stream] ?? 0)
            guard gone > 0 else { continue }
            try expectNone(now.uploaded.count, "uploaded batches", stream, gone)
            // Released chunks are not gone.
            let pending = now.pending[stream] ?? []
            let unmarked =
                stream == Stream.audio.number
                ? before.held.subtracting(now.held).subtracting(pending) : []
            if let newest = unmarked.max(), let oldest = now.held.min(), newest > oldest {
                throw Violation("eviction order", "held \(newest) went, and \(oldest) stays")
            }
            guard gone > max(0, held) + Int64(unmarked.count) else { continue }
            // In a step of sound some may have come after the others went.
            if !hasSound { try expectNone(now.held.count, "held chunks", stream, gone) }
            try expectNone(now.quarantined.count, "quarantined records", stream, gone)
            try checkPending(stream, before, now, isQuiet: isQuiet)
        }
    }

    /// Checks that nothing that waits is deleted unless that frees room which is needed.
    ///
    /// Where others fill the disk, the database itself must be large enough to make up for it.
    private func checkPurpose(_ before: Holdings, _ now: Holdings, _ device: Device) throws {
        let limits = device.limits
        let journal = min(4 << 20, max(64 << 10, limits.maxSize / 20))
        let isAtLimit = now.fileBytes + (512 << 10) > (limits.maxSize - journal) / 100 * 98
        let need = min(limits.criticalFree, 4 << 20)
        for (stream, evicted) in now.evicted where !isAtLimit {
            let held = (before.quarantined[stream] ?? 0) - (now.quarantined[stream] ?? 0)
            // Held sound goes early, too.
            guard stream != Stream.audio.number || before.held.isEmpty else { continue }
            let gone = evicted - (before.evicted[stream] ?? 0) - max(0, held)
            guard gone > 0, now.fileBytes < 2 * need else { continue }
            throw Violation(
                "deleted in vain",
                "\(gone) of stream \(stream), in a database of \(now.fileBytes) bytes where \(need) are needed"
            )
        }
    }

    private func expectNone(_ left: Int, _ what: String, _ stream: Int, _ gone: Int64) throws {
        guard left > 0 else { return }
        throw Violation("eviction order", "\(gone) of stream \(stream), and \(left) \(what) stay")
    }

    private func checkPending(
        _ stream: Int,
        _ before: Holdings,
        _ now: Holdings,
        isQuiet: Bool
    ) throws {
        let left = Set(now.pending[stream] ?? [])
        let (kept, gone) = (before.pending[stream] ?? []).reduce(into: ([Int64](), [Int64]())) {
            if left.contains($1) { $0.0.append($1) } else { $0.1.append($1) }
        }
        if let newest = gone.last, let oldest = kept.first, newest > oldest {
            throw Violation(
                "eviction order",
                "\(newest) of stream \(stream) went, and \(oldest) stays"
            )
        }
        guard isQuiet, !gone.isEmpty else { return }
        // The same rows take more or less room depending on how they share pages.
        let size = (before.pendingBytes[stream] ?? 0) * 3 / 2 + 16_384
        for (other, bytes) in now.pendingBytes where other != stream && bytes > size {
            throw Violation(
                "eviction order",
                "stream \(stream) of \(before.pendingBytes[stream] ?? 0) bytes gave way, not \(other) of \(bytes)"
            )
        }
    }
}

extension World {
    /// Checks what the device deleted in this step, if nothing else can have removed records.
    func checkStorage(_ device: Device, _ number: Int) throws {
        let kind = plan.steps[number].kind
        let account = device.account
        guard let queue = device.queue, queue.isAllOnDisk, !device.disk.isOff, !account.isDamaged,
            !account.isGarbled, !account.hasFailedSync, !account.hasFailedWrite,
            !device.disk.hasFaults, queue.setAside.isEmpty
        else { return device.storage.forget() }
        let hasRoom = device.limits.maxSize >= 1 << 30 && device.disk.capacity == nil
        // Where there is room nothing is deleted, so a look before the limit is lowered is enough.
        let shrinksNext = number + 1 < plan.steps.count && plan.steps[number + 1].kind == .shrink
        guard !hasRoom || shrinksNext || [.sync, .health, .limits].contains(kind) else { return }
        guard
            let now = try? view.look(
                at: device.disk,
                { try Holdings($0, queue.streams.kinds) }
            )
        else { return device.storage.forget() }
        try device.storage.look(
            now,
            after: kind,
            number: number,
            of: device,
            at: self.now,
            retention: plan.retention.milliseconds
        )
    }
}
