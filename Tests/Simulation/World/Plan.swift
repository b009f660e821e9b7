// Draws a history from a seed: its kinds of fault, then its steps.
package import Queue

/// Everything that decides what happens in a world.
package struct Plan {
    package var seed: UInt64
    package var steps: [Step]
    package var beacons = 4
    /// The limit of a body.
    package var batchBytes = 2000
    package var maxAttempts = 3
    /// The server's final behaviour: one of those that accept everything.
    var peace = ServerMode.good
    package var memoryLimit = 1000
    /// The WAL is as long as on a device from the start on.
    var lengthensJournal = false
    package var auditEvery = 8
    package var limits = StorageLimits()
    package var retention = Duration.seconds(3600)
    /// The most padding bytes in a record.
    package var padding = 20
    /// The newest records are sent between any two batches of a backlog, and leave islands of
    /// frozen records.
    var newestBetween = false
    /// At the end the server fails on a few records for a while.
    var chokes = false
    /// The daily byte budget, if the history has one.
    package var budget: Int64?
    /// Bytes of the database may be changed.
    package var allowsDamage = true
    /// The sources say when they listen.
    var keepsEffort = false
    /// The server asks for jobs and sends settings.
    var hasJobs = false

    /// Sound that nobody has marked is held.
    var holdsSound = false

    /// The server takes columns, in some of its versions.
    var hasColumns = false

    /// The history has faults of the disk or damage.
    var hasFaults: Bool {
        let faults: Set<Step.Kind> = [
            .powerCut, .powerOff, .full, .failWrites, .failSyncs, .failReads, .failOlderReads,
            .readOnly, .damage, .cut, .clip, .empty, .rollback, .replace, .squeeze, .crowd,
        ]
        return steps.contains { faults.contains($0.kind) }
    }

    /// Draws a history; `hasIslands` false reproduces seeds from before there were islands and
    /// mishaps.
    package init(seed: UInt64, length: Int = 120, hasIslands: Bool = true) {
        self.seed = seed
        steps = []
        var chance = Chance(seed)
        beacons = chance.scale(1...12)
        batchBytes = 1024 + chance.scale(1...6000)
        maxAttempts = chance.number(1...5)
        peace = chance.one(of: [.good, .good, .good, .good, .good, .good, .saysDuplicates, .echoes])
        memoryLimit = chance.isOne(in: 3) ? chance.number(5...100) : 1000
        limits = Self.limits(&chance)
        retention = .seconds(chance.scale(10...20_000))
        padding = chance.isOne(in: 2) ? 20 : 2000
        // Once drew a schema: the draws stay, so that each seed keeps its history.
        if chance.isOne(in: 10) { _ = chance.number(1...4) }
        let weights = Self.weights(&chance)
        let sum = weights.reduce(0) { $0 + $1.weight }
        for _ in 0..<length {
            var place = chance.number(0...(sum - 1))
            let kind =
                weights.first {
                    place -= $0.weight; return place < 0
                }?.kind ?? .wait
            steps.append(
                Step(
                    kind,
                    device: chance.number(0...2),
                    amount: chance.scale(0...40),
                    draw: chance.next()
                )
            )
        }
        if chance.isOne(in: 6) {
            steps.insert(contentsOf: Self.night(&chance), at: chance.number(0...steps.count))
        }
        if chance.isOne(in: 2) {
            steps.insert(contentsOf: Self.replacement(&chance), at: chance.number(0...steps.count))
        }
        if seed % 8 == 3 {
            let place = chance.number(0...steps.count)
            steps.insert(contentsOf: Self.mishap(&chance), at: place)
        }
        chokes = hasIslands && seed % 8 == 1
        newestBetween = hasIslands && seed % 4 == 1
        lengthensJournal = hasIslands && seed % 16 >= 14
        if hasIslands, seed % 8 == 5 {
            let place = chance.number(0...steps.count)
            steps.insert(contentsOf: Self.island(&chance), at: place)
        }
        if hasIslands, [0, 2, 4, 7].contains(seed % 8) {
            // Long records, so that a page in the middle of one can be missing.
            padding = 5000
            let place = chance.number(0...steps.count)
            steps.insert(contentsOf: Self.setAside(&chance), at: place)
        }
        if hasIslands, seed % 8 == 6 {
            padding = 5000
            let place = chance.number(0...steps.count)
            steps.insert(contentsOf: Self.found(&chance), at: place)
        }
        // None of the seeds that found something before there was a table.
        if hasIslands, [6, 10, 11, 14].contains(seed % 16) {
            let place = chance.number(0...steps.count)
            steps.insert(contentsOf: Self.table(&chance), at: place)
        }
        if hasIslands, seed % 8 == 2 { addResends() }
        if hasIslands, seed % 16 == 1 { addShortage() }
        if hasIslands, seed % 16 == 9 { addLateClock() }
        if hasIslands, seed % 16 == 5 { addCrowd() }
        if hasIslands, seed % 16 == 12 { addJobs() }
        if hasIslands, seed % 8 == 0 { addHeldSound() }
        // Draws nothing: all other histories stay as they are.
        keepsEffort = hasIslands && seed % 4 == 3
        hasColumns = hasIslands && seed % 4 == 2
    }

    /// Lowers the limit of the database so far that uploaded, quarantined and pending records have to go.
    ///
    /// Draws nothing that the rest of the history depends on; the same holds for `addLateClock`.
    private mutating func addShortage() {
        var chance = Chance(seed ^ 0x5407)
        padding = 5000
        let records: [Step.Kind] = [.sightings, .put, .fixes, .events]
        let kinds =
            [.faultsEnd, .clockSync, .poison] + records + Array(repeating: .sync, count: 7)
            + [.fixes] + Array(repeating: .put, count: 24) + [.shrink, .health, .good, .sync]
        insert(kinds, amounts: 20...40, &chance)
    }

    /// Others fill the disk beside a small database and a server that works: everything arrives.
    private mutating func addCrowd() {
        var chance = Chance(seed ^ 0xC40D)
        let records: [Step.Kind] = [.put, .sightings, .fixes, .events]
        let kinds =
            [.faultsEnd, .good, .clockSync] + records + [.crowd, .health] + records
            + [.wait, .health, .sync, .put, .sightings, .health, .sync, .wait, .faultsEnd, .health]
            + records + [.sync]
        insert(kinds, amounts: 5...20, &chance)
    }

    /// Sends batches that fail before the clock is set, and splits them afterwards.
    private mutating func addLateClock() {
        var chance = Chance(seed ^ 0xC10C)
        let records: [Step.Kind] = [.put, .fixes, .events, .sightings]
        let kinds =
            [.faultsEnd, .reboot] + records + [.wait, .outage, .sync, .sync, .clockSync, .wait]
            + [.oversized, .sync, .sync, .sync, .sync, .good, .sync]
        insert(kinds, amounts: 5...20, &chance)
    }

    mutating func insert(
        _ kinds: [Step.Kind],
        amounts: ClosedRange<Int>,
        _ chance: inout Chance
    ) {
        let scene = kinds.map { Step($0, amount: chance.number(amounts), draw: chance.next()) }
        steps.insert(contentsOf: scene, at: chance.number(0...steps.count / 3))
    }

    /// Adds occasional resends by a person; draws nothing that the rest depends on.
    private mutating func addResends() {
        var chance = Chance(seed ^ 0x5E5E4D)
        for _ in 0..<chance.number(1...6) {
            let place = chance.number(0...steps.count)
            steps.insert(
                Step(.resend, device: chance.number(0...2), draw: chance.next()),
                at: place
            )
        }
    }

    /// Adds jobs and settings of the server, to a history whose database is never replaced by another or an older
    /// one: what that forgot is done again.
    private mutating func addJobs() {
        let replacing: Set<Step.Kind> = [
            .copy, .rollback, .replace, .damage, .cut, .clip, .empty,
        ]
        steps.removeAll { replacing.contains($0.kind) }
        hasJobs = true
        var chance = Chance(seed ^ 0x10B5)
        for _ in 0..<chance.number(4...12) {
            let step = Step(.job, device: chance.number(0...2), draw: chance.next())
            steps.insert(step, at: chance.number(0...steps.count))
        }
        chance = Chance(seed ^ 0x5E77)
        for _ in 0..<chance.number(4...12) {
            let step = Step(.settings, device: chance.number(0...2), draw: chance.next())
            steps.insert(step, at: chance.number(0...steps.count))
        }
    }

    /// Returns the same history with a budget: records beyond it are sent days later.
    package func withBudget() -> Plan {
        var (plan, chance) = (self, Chance(seed ^ 0xB06E7))
        plan.chokes = false
        // Accounts make records each day, so that such a device would never have sent everything.
        plan.keepsEffort = false
        plan.budget = Int64(5000 + chance.scale(0...50_000))
        return plan
    }

    /// Faults in quick succession that are rare by chance: a truncated file, a power cut while a
    /// file is quarantined, a disk that fails during such a read or at the start.
    private static func mishap(_ chance: inout Chance) -> [Step] {
        let records: [Step.Kind] = [.faultsEnd, .soundStart, .sound, .put, .sightings, .fixes]
        let faults: [[Step.Kind]] = [
            [.stop, .cut], [.wait, .powerOff, .replace], [.failOlderReads, .replace],
            [.wait, .failReads, .reboot],
            [.failSyncs, .reboot, .faultsEnd, .sightings, .reboot, .clockSync],
        ]
        let kinds = records + chance.one(of: faults) + [.wait, .wait, .faultsEnd, .sync]
        return kinds.map { Step($0, amount: chance.number(0...20), draw: chance.next()) }
    }

    /// Chains of steps: a person drops records that a server refused repeatedly; frozen records lie
    /// among evicted ones; a stream is declared while the disk refuses; the disk refuses to
    /// quarantine a database whose last commit failed.
    private static func island(_ chance: inout Chance) -> [Step] {
        let records: [Step.Kind] = [.faultsEnd, .sightings, .put, .fixes, .wait]
        let syncs: [Step.Kind] = [.clockSync, .sync, .sync, .wait, .sync, .wait, .sync, .sync]
        let starts: [Step.Kind] = [.kill, .reboot, .stop, .wait]
        let kinds: [[Step.Kind]] = [
            [.poison] + records + Array(repeating: .sync, count: 7)
                + [.drop, .drop, .sync, .requeue, .health],
            records + [.sightings, .fixes, .stumble] + syncs + [.sightings] + syncs
                + [.squeeze, .sightings, .wait, .health, chance.one(of: starts)],
            records + [.failWrites, .sightings, .declare, .wait],
            records + [.failSyncs, .fixes, .wait, chance.one(of: [.failWrites, .full, .wait])]
                + [.replace, .wait, chance.one(of: starts)],
        ]
        let last: [Step.Kind] = [.faultsEnd, .good, .put, .sync]
        return (chance.one(of: kinds) + last).map {
            Step($0, amount: chance.number(0...20), draw: chance.next())
        }
    }

    /// A database is quarantined at a bad time: it lost pages of frozen records; or the disk
    /// refuses the move, its marker or the next database, and the commit before it.
    private static func setAside(_ chance: inout Chance) -> [Step] {
        let records: [Step.Kind] = [.faultsEnd, .sightings, .put, .fixes, .wait]
        let kinds: [[Step.Kind]] = [
            [.faultsEnd, .good, .clockSync, .sync, .put, .fixes, .stumble]
                + Array(repeating: .sync, count: 5) + [.stop, .clip],
            records + [.failSyncs, .put, .put, .put, .put]
                + [
                    chance.one(of: [.failWrites, .failReads, .full]), .replace, .wait, .wait,
                    chance.one(of: [.wait, .kill, .reboot]),
                ],
        ]
        let last: [Step.Kind] = [.wait, .faultsEnd, .wait, .good, .sync, .sync]
        return (chance.one(of: kinds) + last).map {
            Step($0, amount: chance.number(0...40), draw: chance.next())
        }
    }

    /// State that a start must not trust: frozen records whose last pages are missing, perhaps
    /// already uploaded; a WAL with writes that a failed sync dropped, and a later power cut.
    private static func found(_ chance: inout Chance) -> [Step] {
        let frozen: [Step.Kind] = [
            .faultsEnd, .good, .sync, .sync, .stumble, .put, .wait, .sync, .wait, .sync, .stop,
            .clip,
        ]
        let journal: [Step.Kind] = [
            .faultsEnd, .put, .wait, .failSyncs, .put, .wait, .kill, .faultsEnd, .fixes, .put,
            .wait,
            .powerCut,
        ]
        let rounds = (0..<3).flatMap { _ in chance.one(of: [frozen, journal]) }
        return ([.clockSync] + rounds + [.good, .sync, .sync]).map {
            Step($0, amount: chance.number(0...10), draw: chance.next())
        }
    }

    /// A server that gives any answer of waypost-protocol(7), request by request.
    private static func table(_ chance: inout Chance) -> [Step] {
        let records: [Step.Kind] = [.sightings, .put, .fixes, .events, .wait]
        let rounds = (0..<4).flatMap { _ in [chance.one(of: records), .wait, .sync, .sync] }
        let kinds = [.faultsEnd, .clockSync] + records + [.table] + rounds + [.good, .sync]
        return kinds.map { Step($0, amount: chance.number(0...12), draw: chance.next()) }
    }

    /// A database is quarantined with all its records, perhaps while the disk refuses a commit:
    /// none may be lost or sent twice.
    private static func replacement(_ chance: inout Chance) -> [Step] {
        let before: [Step.Kind] = [
            .sightings, .soundStart, .sound, .put, .failSyncs, .fixes, .wait,
        ]
        let kinds = before.filter { _ in chance.isOne(in: 2) } + [.replace, .faultsEnd, .wait]
        return kinds.map { Step($0, amount: chance.number(0...8), draw: chance.next()) }
    }

    /// A device restarts in the evening and receives nothing until the morning: rare by chance, and
    /// a case where numbers of deleted rows could be reused.
    private static func night(_ chance: inout Chance) -> [Step] {
        let kinds: [Step.Kind] = [
            .faultsEnd, .sightings, .fixes, .wait, chance.one(of: [.stop, .kill, .reboot]), .sync,
            .sync,
            .night, .health, .beacons, .sightings, .wait, .sync,
        ]
        return kinds.map { Step($0, amount: chance.number(0...8), draw: chance.next()) }
    }

    static func limits(_ chance: inout Chance) -> StorageLimits {
        StorageLimits(
            maxSize: chance.isOne(in: 2) ? 2_000_000_000 : Int64(chance.number(300_000...600_000)),
            warnFree: Int64(chance.scale(0...200_000)),
            criticalFree: Int64(chance.scale(0...100_000))
        )
    }

    /// Steps of every history, with their weights.
    private static let ordinary: [(kind: Step.Kind, weight: Int)] = [
        (.wait, 20), (.sightings, 14), (.fixes, 5), (.events, 4), (.put, 5), (.sync, 10),
        (.clockSync, 3), (.health, 5), (.night, 1),
    ]

    /// Steps of some histories.
    private static let special: [Step.Kind] = [
        .gap, .clockNote, .clockStep, .clockRight, .beacons, .lossNoted, .soundStart, .sound,
        .soundEnd,
        .soundHole, .surveyStart, .surveyStop, .maintain, .requeue, .drop, .limits, .declare,
        .stop, .kill, .reboot, .powerCut, .powerOff, .full, .failWrites, .failSyncs, .failReads,
        .readOnly, .damage, .cut, .empty, .snapshot, .rollback, .copy, .server,
    ]

    private static func weights(_ chance: inout Chance) -> [(kind: Step.Kind, weight: Int)] {
        var weights = ordinary
        let isCalm = chance.isOne(in: 10)
        for kind in special {
            let isThere = chance.number(0...99) < (isCalm ? 5 : 40)
            guard isThere else { continue }
            weights.append((kind, chance.number(1...6)))
        }
        if weights.contains(where: { $0.kind == .sound }) {
            weights.append((.soundStart, 3))
            weights.append((.sound, 10))
        }
        weights.append((.faultsEnd, 4))
        return weights
    }
}

extension Plan: CustomStringConvertible {
    package var description: String {
        let settings =
            "seed \(seed): \(beacons) beacons, batches of \(batchBytes) bytes, \(maxAttempts) attempts, "
            + "memory for \(memoryLimit), retention \(retention), \(limits), padding \(padding), "
            + "server \(peace.rawValue) in the end, budget \(budget ?? 0)"
        return ([settings] + steps.enumerated().map { "\($0): \($1)" }).joined(separator: "\n")
    }
}
