// A world: devices, a server and the time, advanced step by step.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk

/// Runs one history on one thread.
package final class World {
    var plan: Plan
    var truth = Truth()
    var devices: [Device] = []
    let server: Server
    /// The real time, in ms since 1970.
    var now: Int64 = 1_780_000_000_000
    var snapshots: [Int: (SimulatedDisk.Snapshot, Account)] = [:]
    /// Called with a line for each event.
    package var log: ((String) -> Void)? {
        didSet { server.log = log }
    }
    /// The jobs of each device, by its number, and a count of the server's offers.
    var jobs: [Int: JobAccount] = [:]
    var offered = 0
    /// Every mark of sound, also those that were refused.
    var marks: [KnownMark] = []
    let view: View
    /// The invariants of the program that did not hold before this history.
    private let broken = BrokenInvariants.shared.count
    /// The number of times the databases were checked.
    var audits = 0

    /// Makes a single-threaded program that runs only worlds faster.
    package static func useOneThread() { SimulatedDisk.useOneThread() }

    /// Creates a world; a `view` shared by all worlds of a thread makes them faster.
    package init(_ plan: Plan, view: View = View()) {
        self.plan = plan
        self.view = view
        SimulatedDisk.seedSQLite(UInt32(truncatingIfNeeded: plan.seed &* 2_654_435_761 | 1))
        server = Server(plan.seed ^ 0x5E4E, knowsColumns: plan.hasColumns)
        var chance = Chance(plan.seed ^ 0x1D)
        truth.identities = (0..<plan.beacons).map { Self.identity($0, &chance) }
        let device = Device(0, SimulatedDisk(seed: plan.seed), seed: plan.seed ^ 0xDE)
        add(device)
        device.boot(&truth, at: now, offset: 0, uptime: 4000)
    }

    func add(_ device: Device) {
        devices.append(device)
        device.limits = plan.limits
        device.memoryLimit = plan.memoryLimit
        device.lengthensJournal = plan.lengthensJournal
        device.heldSound = heldSound
        device.userStreams = [DeclaredStream(name: "weather", wire: "weather")]
    }

    private static func identity(_ number: Int, _ chance: inout Chance) -> BeaconIdentity {
        let kinds: [BeaconKind] = [.iBeacon, .eddystoneUID, .manufacturer, .altBeacon]
        return BeaconIdentity(
            kind: kinds[number % kinds.count],
            beaconID: number % 3 == 0 ? "" : "beacon-\(number)",
            address: BluetoothAddress(value: chance.next()),
            addressType: number % 2 == 0 ? .public : .randomStatic,
            txPower: number % 4 == 0 ? nil : -50 - number % 20
        )
    }

    /// Runs a history and its final phase; returns the violation and the index of its step.
    package func run() -> (Violation, step: Int)? {
        var place = -1
        do {
            try start(devices[0])
            for (number, step) in plan.steps.enumerated() {
                place = number
                log?("\(number): \(step)")
                try receive(step)
                try look(number)
            }
            place = plan.steps.count
            try findPeace()
            return nil
        } catch let violation as Violation {
            return (violation, place)
        } catch {
            return (Violation("error", "\(error)"), place)
        }
    }

    private func look(_ number: Int) throws {
        for device in devices {
            try settlePower(device)
            if device.queue == nil { try start(device) }
            try device.turn()
            try settlePower(device)
            if device.queue?.setAside.isEmpty == false { device.account.wasSetAside = true }
            try readEffort(device)
        }
        if let found = server.found { throw found }
        if BrokenInvariants.shared.count > broken, let what = BrokenInvariants.shared.last {
            throw Violation("own invariant", what)
        }
        for device in devices { try checkStorage(device, number) }
        if number % plan.auditEvery == plan.auditEvery - 1 {
            for device in devices { try audit(device) }
        }
    }

    /// Handles a power cut during an operation: the next start shows what is left.
    func settlePower(_ device: Device) throws {
        guard device.disk.isOff else { return }
        var chance = Chance(plan.seed ^ UInt64(truth.boots.count))
        device.vanish()
        device.disk.crash(using: &chance)
        restart(device, &chance)
        try start(device)
    }

    /// Boots again, with a clock that is right, was kept, or knows nothing.
    func restart(_ device: Device, _ chance: inout Chance) {
        let offsets: [Int64] = [0, 0, Int64(-chance.scale(0...3_000_000)), -now, 86_400_000]
        device.boot(
            &truth,
            at: now,
            offset: chance.one(of: offsets),
            uptime: Int64(chance.number(1000...20_000))
        )
    }

    /// Starts the program and compares the disk with what was known before.
    func start(_ device: Device) throws {
        device.start(truth)
        guard let queue = device.queue else { return }
        recordAll(.listening, device)
        if plan.hasJobs { device.jobs = try JobProgram(self, device, queue) }
        device.syncer = try Syncer(
            device,
            queue,
            server,
            plan,
            clock: device.clock,
            random: { [random = device.random] in random.next() }
        ) { [unowned self] in truth }
        try device.turn()
        if device.disk.isOff { return }
        try audit(device, isStart: true)
    }
}
