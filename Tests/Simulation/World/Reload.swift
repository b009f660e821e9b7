// What the program remembers, beside what it would remember after a restart.
internal import Host
internal import Queue
internal import SimulatedDisk
internal import Streams

extension World {
    /// Opens a copy of the disk and compares.
    func compareWithReload(_ device: Device) throws {
        // What a failed sync gave up is not committed, and may be found by a restart all the same.
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
        // A damage that is seen at a start only, or another name for an older database.
        if device.account.isDamaged, again.setAside != queue.setAside { return }
        // Sound that goes on is a chunk after a restart.
        for kind in queue.streams.kinds where device.sound == nil || kind.stream != .audio {
            try compare(kind.stream, queue, again, device)
        }
        let (losses, found) = (try? queue.losses(), try? again.losses())
        // Reading may fail just now.
        guard losses == nil || losses == found else {
            throw Violation(
                "reload",
                "device \(device.number): losses \(String(describing: losses)), on the disk \(String(describing: found))"
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
        let (memory, disk) = (figures(stream, queue), figures(stream, again))
        guard memory == disk else {
            throw Violation(
                "reload",
                "device \(device.number): \(stream) \(memory), on the disk \(disk)"
            )
        }
    }

    private func figures(_ stream: Stream, _ queue: Queue) -> [Int] {
        guard let figures = queue.statistics().first(where: { $0.stream == stream }) else {
            return []
        }
        return [
            figures.accepted, figures.pending, figures.uploaded, figures.quarantined,
            figures.evicted, figures.notKept,
        ]
    }
}
