// Faults of the power and the disk.
internal import Queue
internal import Records
internal import SimulatedDisk

extension World {
    func takeFault(_ step: Step, _ device: Device, _ chance: inout Chance) throws {
        let disk = device.disk
        switch step.kind {
        case .powerCut: try cutPower(device, &chance)
        case .powerOff: disk.powerOff(after: chance.scale(1...300))
        case .full:
            device.account.isLate = true
            disk.capacity = disk.usedBytes + Int64(chance.scale(0...100_000))
        case .squeeze:
            device.account.isLate = true
            let size = disk.size(Device.path) ?? 0
            disk.capacity = disk.usedBytes + size / 8
            device.limits = StorageLimits(warnFree: size / 2, criticalFree: size / 4)
            device.queue?.limit(device.limits)
        case .crowd:
            device.account.isLate = true
            disk.capacity = disk.usedBytes + Int64(chance.scale(0...5_000_000))
            device.limits = StorageLimits()
            device.queue?.limit(device.limits)
        case .failWrites:
            device.account.isLate = true
            device.account.hasFailedWrite = true
            disk.fail(.writes, after: chance.scale(0...30), times: chance.scale(1...30))
        case .failSyncs:
            device.account.hasFailedSync = true
            disk.fail(.syncs, after: chance.scale(0...6), times: chance.scale(1...4))
        case .failReads: disk.fail(.reads, after: chance.scale(0...60), times: chance.scale(1...10))
        case .failOlderReads:
            disk.fail(.olderReads, after: chance.number(0...100), times: chance.scale(1...10))
        case .readOnly:
            device.account.isLate = true
            disk.isReadOnly = true
        case .faultsEnd:
            disk.clearFaults()
            disk.isReadOnly = false
            disk.capacity = nil
        case .snapshot:
            guard !device.account.hasFailedSync else { return }
            server.endsOfCopies.formUnion(ends(of: device))
            snapshots[device.number] = (disk.snapshot(), device.account)
        case .rollback: try rollBack(device, &chance)
        case .copy: try copy(device, &chance)
        case .replace:
            guard let queue = device.queue else { return }
            server.sent.forget(device.number)
            queue.reportDamage("for the simulation", generation: queue.generation)
            try device.turn()
        default: try damage(step, device, &chance)
        }
    }

    /// Returns segments that may be in no chunk on the disk: the newest, or all that memory holds
    /// while the disk fails.
    private func ends(of device: Device) -> ArraySlice<Int> {
        device.account.isLate
            ? device.account.segments[...] : device.account.segments.suffix(2 * Self.chunkLimit)
    }

    private func cutPower(_ device: Device, _ chance: inout Chance) throws {
        device.vanish()
        device.disk.crash(using: &chance, chance.isOne(in: 2) ? .harsh : .mild)
        restart(device, &chance)
        try start(device)
    }

    /// Restores the whole file system to an earlier state while the machine is off.
    private func rollBack(_ device: Device, _ chance: inout Chance) throws {
        guard let (snapshot, account) = snapshots[device.number] else { return }
        device.vanish()
        server.sent.forget(device.number)
        device.disk.restore(snapshot)
        // A disk fault persists across the rollback.
        let was = device.account
        device.account = account
        device.effort.isVoid = true
        if device.disk.mayRefuse {
            device.account.hasFailedSync = account.hasFailedSync || was.hasFailedSync
            device.account.hasFailedWrite = account.hasFailedWrite || was.hasFailedWrite
            device.account.isLate = true
        }
        device.account.vanish()
        restart(device, &chance)
        try start(device)
    }

    /// Copies the device's state to a second device, which continues independently.
    private func copy(_ device: Device, _ chance: inout Chance) throws {
        // A copy has what a failed sync or write left on the disk, and its device writes that once
        // more.
        guard devices.count < 3, !device.disk.isOff, !device.account.hasFailedSync,
            !device.account.hasFailedWrite
        else { return }
        server.endsOfCopies.formUnion(ends(of: device))
        let second = Device(
            devices.count,
            device.disk.copy(seed: chance.next()),
            seed: chance.next()
        )
        add(second)
        second.limits = device.limits
        second.userStreams = device.userStreams
        second.account = device.account
        second.effort = device.effort
        second.account.vanish()
        restart(second, &chance)
        try start(second)
    }

    private func damage(_ step: Step, _ device: Device, _ chance: inout Chance) throws {
        guard plan.allowsDamage else { return }
        let disk = device.disk
        let file = Device.path + (chance.isOne(in: 4) ? "-wal" : "")
        guard let size = disk.size(file), size > 0 else { return }
        // Kill the program first, so that it does not overwrite the damage by chance.
        device.vanish()
        disk.kill()
        device.account.isDamaged = true
        server.sent.forget(device.number)
        // A clock note may be lost: records dated by it are as good as the next note.
        truth.boots[device.boot].doubtSyncs()
        // If the end of the WAL is lost, chunks are made of their segments once more.
        server.endsOfCopies.formUnion(device.account.segments)
        switch step.kind {
        case .damage:
            device.account.isGarbled = true
            let bytes = (0..<chance.scale(1...2000)).map { _ in
                UInt8(truncatingIfNeeded: chance.next())
            }
            // A version newer than ours is left alone, whatever caused it: it would wait for a
            // person.
            let version = file == Device.path ? try? disk.read(file, at: 60, count: 4) : nil
            try? disk.damage(file, at: Int64(chance.number(0...Int(size - 1))), with: bytes)
            if let version { try? disk.damage(file, at: 60, with: version) }
        case .cut: try? disk.damage(file, cutTo: Int64(chance.number(0...Int(size))))
        case .clip: try? disk.damage(file, cutTo: max(0, size - Int64(chance.scale(1...200_000))))
        default: try? disk.damage(file, cutTo: 0)
        }
        if !device.account.isGarbled {
            let left = Presence(disk, streams: StreamList.builtIn)
            device.account.readable = left.records
            device.account.readableSegments = left.segments
        }
        try start(device)
    }
}
