// Actions of people and timers.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk
internal import Upload

extension World {
    func runCommand(_ step: Step, _ device: Device, _ chance: inout Chance) throws {
        guard let queue = device.queue else { return }
        switch step.kind {
        case .sync:
            let reasons: [SyncReason] = [.asked, .asked, .tick, .tick, .retry, .network]
            try device.syncer?.perform(chance.one(of: reasons), server)
        case .health: try health(device, queue)
        case .maintain: _ = queue.turnMaintenance()
        case .requeue, .drop: checkQuarantine(step, device, queue, &chance)
        case .resend: resend(device, queue, &chance)
        case .limits:
            device.limits = Plan.limits(&chance)
            queue.limit(device.limits)
        case .shrink:
            device.limits = StorageLimits(maxSize: 200_000, warnFree: 0, criticalFree: 0)
            queue.limit(device.limits)
        case .declare: declare(device, queue, &chance)
        case .stop:
            close(queue, of: device)
            device.vanish()
            try start(device)
        case .kill:
            device.vanish()
            device.disk.kill()
            try start(device)
        default: try reboot(device, queue, &chance)
        }
    }

    private func health(_ device: Device, _ queue: Queue) throws {
        queue.purge(retention: plan.retention)
        device.effort.isPurged = true
        queue.checkStorage()
        try device.turn()
        try checkRetention(device)
    }

    private func checkQuarantine(
        _ step: Step,
        _ device: Device,
        _ queue: Queue,
        _ chance: inout Chance
    ) {
        guard let held = try? queue.perform({ try $0.quarantined(limit: 100) }), !held.isEmpty
        else {
            return
        }
        let batch = chance.one(of: held)
        log?("  \(step.kind) \(batch.stream) \(batch.first)...\(batch.last)")
        server.sent.forget(device.number)
        _ = try? queue.perform { writer in
            if step.kind == .requeue {
                _ = try writer.requeue(batch)
            } else {
                _ = try writer.drop(batch)
            }
        }
    }

    /// Resends all uploaded records, or those that one stream uploaded in the last hours.
    private func resend(_ device: Device, _ queue: Queue, _ chance: inout Chance) {
        let isAll = chance.isOne(in: 2)
        // Without effort, which not every history has.
        let streams = queue.streams.streams.filter { $0 != .effort }
        let stream = isAll ? nil : chance.one(of: streams)
        let hours = chance.number(0...3)
        let since = isAll ? 0 : device.now.wall - Int64(hours) * 3_600_000
        let range = ResendRange(stream, since: WallTime(milliseconds: since))
        let marked = try? queue.perform { try $0.resend(range) }
        log?("  resend \(marked?.records ?? 0) records of \(stream.map { "\($0)" } ?? "all")")
    }

    private func declare(_ device: Device, _ queue: Queue, _ chance: inout Chance) {
        let names = ["weather", "soil", "door"].prefix(chance.number(1...3))
        device.userStreams = names.map { DeclaredStream(name: $0, wire: $0) }
        queue.declare(device.userStreams)
    }

    /// Ends the program in order: records not on the disk are in the losses that it returns.
    private func close(_ queue: Queue, of device: Device) {
        if let open = device.sound { queue.end(run: open.run.id) }
        recordAll(.off("stopped"), device)
        let losses = queue.close()
        // Writes dropped by a failed sync may or may not be there.
        guard !device.account.hasFailedSync else { return }
        device.account.end(losses)
    }

    private func reboot(_ device: Device, _ queue: Queue, _ chance: inout Chance) throws {
        if chance.isOne(in: 2) { close(queue, of: device) }
        device.vanish()
        device.disk.kill()
        restart(device, &chance)
        try start(device)
    }
}
