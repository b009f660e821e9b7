// Compares the program's memory with what it would read after a restart.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk

extension World {
    /// Opens a copy of the disk and compares.
    func compareWithReload(_ device: Device, _ presence: Presence) throws {
        do {
            try compare(device, presence)
        } catch let found as Violation {
            // A failed write may have arrived: rolled-back records are there after a restart.
            // Changed pages may still be unchanged in the program's memory.
            if !device.account.hasFailedWrite, !device.account.isGarbled { throw found }
        }
    }

    private func compare(_ device: Device, _ presence: Presence) throws {
        // Writes dropped by a failed sync are not committed, but a restart may find them.
        guard let queue = device.queue, queue.isAllOnDisk, !device.disk.isOff,
            !device.account.hasFailedSync
        else { return }
        let copy = device.disk.copy(seed: 4)
        copy.capacity = nil
        var settings = device.settings(of: truth)
        settings.disk = DiskAdapter(disk: copy)
        let random = RandomBox(plan.seed)
        settings.random = { random.next() }
        guard let again = try? Queue(settings: settings) else {
            throw Violation("reload", "device \(device.number): a copy of the disk does not open")
        }
        defer { withExtendedLifetime(copy) {} }
        // Damage that only a start detects, or another name for an older database.
        if device.account.isDamaged, again.setAside != queue.setAside { return }
        let (memory, disk) = (figures(queue), figures(again))
        // Audio being recorded becomes a chunk at a restart.
        for kind in queue.streams.kinds where device.sound == nil || kind.stream != .audio {
            try compare(kind.stream, queue, again, device)
            let (memory, disk) = (memory[kind.stream] ?? [], disk[kind.stream] ?? [])
            guard memory == disk else {
                throw Violation(
                    "reload",
                    "device \(device.number): \(kind.stream) \(memory), on the disk \(disk)"
                )
            }
        }
        // Reading may fail temporarily.
        guard let losses = try? queue.losses() else { return }
        // None on either side, so the copy need not be opened.
        if losses.isEmpty, presence.ledger.isEmpty { return }
        let found = try? again.losses()
        guard losses == found else {
            throw Violation(
                "reload",
                "device \(device.number): losses \(losses), on the disk \(String(describing: found))"
            )
        }
    }

    private func compare(
        _ stream: Stream,
        _ queue: Queue,
        _ again: Queue,
        _ device: Device
    ) throws {
        for newest in [false, true] {
            let (memory, disk) = (
                queue.pending(stream, newest: newest), again.pending(stream, newest: newest)
            )
            guard memory == disk else {
                throw Violation(
                    "reload",
                    "device \(device.number): set aside \(again.setAside), pending \(String(describing: memory)), on the disk \(String(describing: disk))"
                )
            }
        }
    }

    private func figures(_ queue: Queue) -> [Stream: [Int]] {
        let figures = queue.statistics(dated: false).map {
            (
                $0.stream,
                [
                    $0.accepted, $0.pending, $0.uploaded, $0.quarantined, $0.evicted, $0.notKept,
                    $0.held,
                    $0.heldBytes,
                ]
            )
        }
        return Dictionary(uniqueKeysWithValues: figures)
    }
}
