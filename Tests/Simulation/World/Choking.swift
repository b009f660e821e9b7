// A server that fails on a few records and accepts all others.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk
internal import Upload

extension World {
    /// The most syncs until each batch with such a record has failed often enough, with occasional
    /// kills.
    private static let rounds = 150

    /// Lets the server fail on a few records for a while: all others arrive, and these wait behind
    /// their streams.
    ///
    /// A fix is recorded before each sync, or nothing would show that the server accepts others.
    /// Disk faults are over.
    func passChoking() throws {
        guard plan.chokes else { return }
        server.choking = try chokingRecords()
        guard !server.choking.isEmpty else { return }
        server.mode = .chokes
        for round in 0..<Self.rounds {
            if round % 20 == 13 { try killAll() }
            for device in devices {
                try receive(Step(.fixes, device: device.number, amount: 0, draw: 0))
            }
            try pass(600_000)
            try syncInPeace(.tick)
        }
        for device in devices { try checkChoking(device) }
        server.mode = plan.peace
    }

    /// Returns up to three records that the server does not have.
    private func chokingRecords() throws -> Set<Int> {
        var chance = Chance(plan.seed ^ 0xC0C)
        let missing = Set(devices.flatMap { $0.account.taken.values.joined() })
            .subtracting(server.serials).sorted()
        guard !missing.isEmpty else { return [] }
        return Set((0..<chance.number(1...3)).map { _ in chance.one(of: missing) })
    }

    private func killAll() throws {
        for device in devices {
            device.vanish()
            device.disk.kill()
            try start(device)
        }
    }

    private func checkChoking(_ device: Device) throws {
        guard let queue = device.queue, queue.isAllOnDisk, !device.account.isGarbled else { return }
        let waiting = queue.statistics(dated: false).filter { $0.pending > 0 }
        let pending = waiting.reduce(0) { $0 + $1.pending }
        guard pending > server.choking.count else { return }
        throw Violation(
            "held up",
            "device \(device.number): \(pending) records wait, \(server.choking.count) choke the server: "
                + waiting.map { "\($0.pending) of \($0.stream)" }.joined(separator: ", ")
                + "; \(device.syncer?.failures ?? [])"
        )
    }
}
