// Invariants of each device, whatever happened.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk
internal import SQLite
internal import Upload

extension World {
    /// The most segments in a chunk.
    static let chunkLimit = 6

    /// Compares the records a device accepted with its disk, the server and the loss ledger.
    ///
    /// `isStart`: the program has just started, so uncertain records are now known to be there or
    /// not.
    func audit(_ device: Device, isStart: Bool = false) throws {
        guard let queue = device.queue, queue.isAllOnDisk, !device.disk.isOff else { return }
        audits += 1
        let streams = queue.streams.kinds
        let presence = try view.look(at: device.disk) { live in
            let presence = Presence(live, device.disk, streams: streams, view.older)
            if let why = presence.unreadable, !device.account.isUnchecked {
                throw Violation("readable", "device \(device.number): \(why)")
            }
            if !device.account.isGarbled {
                try TableAudit(live, streams).check(isDamaged: device.account.isDamaged)
            }
            return presence
        }
        if presence.unreadable != nil { return }
        if audits % 4 == 0 || isStart { try compareWithReload(device, presence) }
        // A temporary disk error is not damage.
        let givesUp = plan.holdsSound && (device.account.wasSetAside || !queue.setAside.isEmpty)
        guard
            presence.givenUp == 0 || device.account.isDamaged || device.account.hasFailedSync
                || givesUp
        else {
            throw Violation("given up", "device \(device.number): \(presence.givenUp) records")
        }
        // If the disk refused writes for a while, the server's answer may not be stored either.
        if isStart || device.account.isLate || device.account.hasFailedSync {
            device.account.ambiguous.formUnion(presence.ready.intersection(server.serials))
        }
        for kind in streams where kind.stream != .audio {
            try balance(device, kind.stream, presence)
        }
        try balanceAudio(device, presence)
        try checkQuarantine(device, presence)
        try checkHeld(device, presence)
        device.account.look()
    }

    private func balance(
        _ device: Device,
        _ stream: Stream,
        _ presence: Presence
    ) throws {
        let number = stream.number
        let taken = device.account.taken[number] ?? []
        let missing = taken.filter {
            !presence.records.contains($0) && !server.serials.contains($0)
        }
        var silent = device.account.silent[number] ?? 0
        silent += taken.count {
            server.serials.contains($0) && !presence.records.contains($0)
                && (!device.account.acknowledged.contains($0)
                    || device.account.ambiguous.contains($0))
        }
        let reported = presence.ledger[number] ?? 0
        let gap = missing.count + (device.account.noted[number] ?? 0) - reported
        let before = device.account.gap[number] ?? 0
        let uncertain = (device.account.atRisk[number] ?? 0) + (device.account.hidden[number] ?? 0)
        let words = { [truth] in
            "device \(device.number), \(stream): \(taken.count) taken, missing \(missing.suffix(9)) "
                + "(\(missing.count)), \(reported) told, gap \(before) before, \(uncertain) uncertain; "
                + missing.suffix(2).map { "\($0): \(truth.records[$0])" }.joined(separator: ", ")
        }
        if !device.account.isDamaged, gap > before + uncertain {
            throw Violation("lost untold", words())
        }
        // The program's own events are reported too when they are evicted. If the tables beside the
        // records are lost as well, uploaded records may be reported as lost.
        let least = device.account.isDamaged ? -taken.count : before
        let landed = device.account.mayHaveLanded[number] ?? 0
        // After changed bytes the number of the last record is unreliable.
        if stream != .events, stream != .effort, gap < least - silent - landed, !presence.hasOlder,
            !device.account.isGarbled
        {
            throw Violation("told and not lost", words())
        }
        guard uncertain > 0 || device.account.isDamaged else { return }
        // Records evicted from an older database exist until its file is deleted, and hide the cost
        // of a crash, also of an earlier one.
        device.account.gap[number] = presence.hasOlder ? max(0, before, gap) : gap
        device.account.hidden[number] = presence.hasOlder ? uncertain : 0
    }

    private func balanceAudio(
        _ device: Device,
        _ presence: Presence
    ) throws {
        let number = Stream.audio.number
        let here = { [server] in presence.segments.contains($0) || server.segments.contains($0) }
        // A gap is reported when the next segment reveals it.
        let newest = device.account.segments.last(where: here) ?? -1
        let open = device.sound?.number ?? -1
        let missing = device.account.segments.filter {
            !here($0) && (truth.segments[$0].run != open || $0 < newest)
        }
        device.account.uncertainSegments = device.account.segments.count {
            !here($0) && truth.segments[$0].run == open && $0 > newest
        }
        let reported = presence.ledger[number] ?? 0
        let uncertain = device.account.segmentsAtRisk
        // A reported chunk has at most this many unshared segments.
        let covered = reported * Self.chunkLimit + device.account.segmentGap + uncertain
        if !device.account.isDamaged, missing.count > covered {
            throw Violation(
                "sound lost untold",
                "device \(device.number): \(missing.count) segments, \(reported) chunks told: \(missing.suffix(9))"
            )
        }
        if uncertain > 0 {
            device.account.segmentGap = max(
                device.account.segmentGap,
                missing.count - reported * Self.chunkLimit
            )
        }
    }

    /// Checks that the server refused each quarantined record often enough while it was alone in
    /// its batch.
    private func checkQuarantine(_ device: Device, _ presence: Presence) throws {
        guard !device.account.isGarbled else { return }
        for serial in presence.quarantined where !server.hasRefused(serial, plan.maxAttempts) {
            throw Violation(
                "quarantined untried",
                "record \(serial) of device \(device.number): \(truth.records[serial])"
            )
        }
        for segment in presence.quarantinedSegments
        where !server.hasRefused(segment: segment, plan.maxAttempts) {
            throw Violation("quarantined untried", "segment \(segment) of \(device.number)")
        }
    }

    // MARK: The final phase

    /// Ends all faults, lets the server accept everything and advances the time: every record must
    /// have arrived or be reported as lost.
    func findPeace() throws {
        server.mode = plan.peace
        for device in devices {
            if let open = device.sound { device.queue?.end(run: open.run.id) }
            device.sound = nil
            device.disk.clearFaults()
            device.disk.capacity = nil
            device.disk.isReadOnly = false
        }
        try passTrials()
        try passChoking()
        for round in 0..<12 {
            try pass(round < 6 ? 20_000 : 3_600_000)
            try syncInPeace(round % 2 == 0 ? .asked : .tick)
        }
        if plan.budget != nil { try passBudgets() } else { try passResends() }
        // The last sync may have finished an older database: the event that reports its end needs
        // one more.
        if devices.contains(where: \.isBusy) {
            try pass(20_000)
            try syncInPeace(.asked)
        }
        try checkMarked()
        for device in devices {
            try checkPeace(device)
            try checkAnswers(device)
            try checkEffort(device)
        }
    }

    /// Runs days with a budget each, until nothing is pending.
    private func passBudgets() throws {
        for day in 1...500 where devices.contains(where: \.isBusy) {
            log?("  day \(day)")
            for _ in 0..<3 {
                try pass(8 * 3_600_000)
                try syncInPeace(.tick)
            }
        }
    }

    func syncInPeace(_ reason: SyncReason) throws {
        for device in devices {
            try settlePower(device)
            if device.queue == nil { try start(device) }
            try device.turn()
            try turnJobs(device)
            try device.syncer?.perform(reason, server)
            try device.turn()
            try readEffort(device)
        }
    }

    /// Checks that each record readable after damage has arrived or is reported as lost.
    private func checkSalvaged(_ device: Device) throws {
        guard !device.account.isGarbled, let queue = device.queue else { return }
        let presence = Presence(
            device.disk,
            streams: queue.streams.kinds,
            isThorough: true
        )
        let reported = presence.ledger.values.reduce(0, +)
        let missing = device.account.readable.subtracting(server.serials)
            .subtracting(presence.records)
        guard missing.count <= reported + device.account.cost else {
            throw Violation("not salvaged", "device \(device.number): \(missing), \(reported) told")
        }
        let sound = device.account.readableSegments.subtracting(server.segments)
            .subtracting(presence.segments)
        let covered = (presence.ledger[Stream.audio.number] ?? 0) * Self.chunkLimit
        guard sound.count <= covered + device.account.segmentGap else {
            throw Violation("not salvaged", "device \(device.number): segments \(sound)")
        }
    }

    /// Checks that old uploaded records are deleted.
    func checkRetention(_ device: Device) throws {
        // Writes dropped by a failed sync may be readable here but unknown to the program.
        guard let queue = device.queue, queue.isAllOnDisk, !device.disk.isOff,
            !device.account.hasFailedSync, !device.account.hasFailedWrite,
            !device.account.isGarbled
        else { return }
        let due = device.now.boottime - plan.retention.milliseconds - 60_000
        let late = try? view.look(at: device.disk) {
            let rows = try $0.connection.prepare(
                """
                SELECT count(*) FROM batches WHERE state=1 AND database=0 AND done_boottime<?
                AND resend=0 AND done_boot=(SELECT id FROM boots WHERE boot_id=?)
                AND NOT EXISTS (SELECT 1 FROM open_survey WHERE stream=3)
                """
            )
            try rows.bind(due, at: 1)
            try rows.bind(truth.boots[device.boot].name, at: 2)
            return try rows.step() ? rows.required(0) : 0
        }
        if let late, late > 0 {
            throw Violation("retention", "\(late) batches are there that should be gone")
        }
    }

    /// Syncs until all records that a person asked to resend were sent: a sync sends a portion.
    private func passResends() throws {
        for _ in 0..<300 {
            guard devices.contains(where: { marked($0) > 0 }) else { return }
            try pass(20_000)
            try syncInPeace(.asked)
        }
        for device in devices where marked(device) > 0 {
            throw Violation("not resent", "device \(device.number): \(marked(device)) batches")
        }
    }

    /// Returns the number of batches that are to be resent.
    private func marked(_ device: Device) -> Int64 {
        guard !device.account.isGarbled else { return 0 }
        let count = try? view.look(at: device.disk) {
            try $0.connection.integer("SELECT count(*) FROM batches WHERE resend=1") ?? 0
        }
        return count ?? 0
    }

    private func checkPeace(_ device: Device) throws {
        guard let queue = device.queue, queue.isAllOnDisk else {
            throw Violation("no peace", "device \(device.number) does not come to rest")
        }
        if !plan.hasFaults, let path = queue.setAside.first {
            throw Violation("set aside", "device \(device.number): \(path), and nothing was wrong")
        }
        for declared in device.userStreams where queue.streams[name: declared.name] == nil {
            throw Violation("not declared", "device \(device.number): \(declared.name)")
        }
        try audit(device)
        if device.account.isDamaged { try checkSalvaged(device) }
        for figures in queue.statistics(dated: false) where figures.pending > 0 {
            let range = queue.pending(figures.stream)
            let batch = try? queue.nextReady(figures.stream)
            log?("  failures \(device.syncer?.failures ?? []), files \(device.disk.files)")
            throw Violation(
                "no peace",
                "device \(device.number): \(String(describing: range)), \(String(describing: batch)), \(figures.pending) of \(figures.stream) still pending"
            )
        }
    }
}
