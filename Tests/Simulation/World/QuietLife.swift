// A quiet device, hour by hour: the totals of a year.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk
internal import Upload

extension World {
    /// Simulates hours: beacons each minute, a fix and a sync every five, a clock note and a window
    /// of audio per hour, occasional mishaps.
    package func live(hours: Int) -> Violation? {
        var chance = Chance(plan.seed ^ 0x11FE)
        plan.batchBytes = 1 << 20
        plan.keepsEffort = true
        do {
            try start(devices[0])
            for hour in 0..<hours {
                for _ in 0..<12 { try fiveMinutes(&chance) }
                try receive(Step(.clockSync))
                for kind in [Step.Kind.soundStart, .sound, .soundEnd] {
                    try receive(Step(kind, amount: 4, draw: chance.next()))
                }
                if chance.isOne(in: 24) { try mishap(&chance) }
                guard hour % 24 == 23 else { continue }
                try audit(devices[0])
                devices[0].account.forget(server)
            }
            try findPeace()
            return nil
        } catch {
            return error as? Violation ?? Violation("error", "\(error)")
        }
    }

    private func fiveMinutes(_ chance: inout Chance) throws {
        let device = devices[0]
        try receive(Step(.sightings, amount: 4, draw: chance.next()))
        try receive(Step(.fixes, draw: chance.next()))
        try pass(300_000)
        try settlePower(device)
        if device.queue == nil { try start(device) }
        // Before it is uploaded: a full disk may evict what arrived at once.
        try readEffort(device)
        try device.syncer?.perform(.tick, server)
        device.queue?.purge(retention: .seconds(3 * 86_400))
        device.queue?.checkStorage()
        try device.turn()
        try settlePower(device)
        if let found = server.found { throw found }
    }

    private func mishap(_ chance: inout Chance) throws {
        let kinds: [Step.Kind] = [
            .powerCut, .powerOff, .kill, .reboot, .stop, .server, .full, .failWrites, .failReads,
            .faultsEnd, .clockStep, .faultsEnd, .faultsEnd,
        ]
        try receive(Step(chance.one(of: kinds), amount: chance.scale(0...20), draw: chance.next()))
    }

    /// A summary of the counts.
    package var summary: String {
        "\(truth.records.count) records, \(server.requests) requests, \(audits) audits"
    }
}

extension Account {
    /// Stops tracking records that arrived long ago.
    mutating func forget(_ server: Server) {
        for (stream, serials) in taken where serials.count > 2000 {
            let old = serials.dropLast(2000)
            let kept = old.filter { !server.serials.contains($0) || !acknowledged.contains($0) }
            silent[stream, default: 0] +=
                old.count { ambiguous.contains($0) } - kept.count { ambiguous.contains($0) }
            taken[stream] = kept + serials.suffix(2000)
        }
    }
}
