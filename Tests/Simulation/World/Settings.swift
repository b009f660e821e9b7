// Settings of the server on trial: the real gate, file states and answers; what they do is drawn.
internal import Host
internal import Records
internal import Remote
internal import SimulatedDisk

/// The settings of one device.
struct SettingsAccount {
    /// The effect of a version on the device that has it in force.
    enum Nature: CaseIterable {
        case good
        /// No upload is accepted, or no source collects.
        case deaf, failing
        /// The program ends as soon as it has read it.
        case crashing
        /// It has a key that no server may set.
        case invalid
    }

    /// The file beside the queue, which is replaced as a whole.
    private(set) var stored = StoredSettings()
    private(set) var natures: [Int64: Nature] = [:]
    private var tried: Set<Int64> = []
    private var rolledBack: Set<Int64> = []
    private var crashes: [Int64: Int] = [:]
    /// By the serial number of the first reply to a job: that of the last one that is owed.
    private(set) var ends: [Int: Int] = [:]
    private(set) var found: Violation?

    /// Returns a new version, or one that was offered before.
    mutating func draw(_ chance: inout Chance) -> Int64 {
        let newest = Int64(natures.count)
        if newest > 0, chance.isOne(in: 5) { return Int64(chance.number(1...Int(newest))) }
        let good = Nature.good
        natures[newest + 1] = chance.one(of: [good, good, .deaf, .failing, .crashing, .invalid])
        return newest + 1
    }

    /// Replaces the file.
    mutating func replace(_ new: StoredSettings) {
        let old = stored
        stored = new
        if let outcome = new.outcome, outcome != old.outcome { judge(outcome) }
        guard let version = new.current?.number else { return }
        if new.state == .trial, old.current?.number != version {
            if !tried.insert(version).inserted { find("settings tried twice", version) }
        }
        checkForce(version)
    }

    private mutating func judge(_ outcome: StoredSettings.Outcome) {
        let (nature, version) = (natures[outcome.version] ?? .good, outcome.version)
        if let job = Int(outcome.job) { ends[job] = job + JobReply.place(outcome.state) }
        switch outcome.state {
        case "kept": if nature != .good { find("wrong settings kept", version) }
        case "rolled_back":
            rolledBack.insert(version)
            let isBlamed = ["no upload", "audio did not"].contains { outcome.message.hasPrefix($0) }
            if isBlamed, nature == .good { find("good settings rolled back", version) }
        default: break
        }
    }

    /// Checks a version that comes into force.
    mutating func checkForce(_ version: Int64?) {
        guard let version else { return }
        if rolledBack.contains(version) { find("rolled back and in force", version) }
    }

    /// Checks that a trial that was answered is stored, or was.
    mutating func checkTrial(_ version: Int64) {
        if !tried.contains(version) { find("a trial that is not stored", version) }
    }

    mutating func crash(of version: Int64) {
        crashes[version, default: 0] += 1
        // The first reads it again after a reload, and two starts end the trial.
        if crashes[version] ?? 0 > 3 { find("crashes again", version) }
    }

    private mutating func find(_ what: String, _ version: Int64) {
        found = found ?? Violation(what, "version \(version): \(stored)")
    }
}

extension JobReply {
    /// The replies that a job may have: the first, `kept` and `rolled_back`.
    static let serials = 3

    /// Returns the place of a state's reply among them.
    static func place(_ state: String) -> Int { ["kept": 1, "rolled_back": 2][state] ?? 0 }

    var serial: Int? { Int(job).map { $0 + Self.place(outcome.state.rawValue) } }
}

extension SimulatedGateway: SettingsDevice {
    private var account: SettingsAccount {
        get { world.jobs[device.number]?.settings ?? SettingsAccount() }
        set { world.jobs[device.number, default: JobAccount()].settings = newValue }
    }

    var deviceID: String { "sim-\(device.number)" }

    /// Starts the program, as `waypost run` does.
    func start() {
        var stored = account.stored
        if stored.state == .trial {
            stored.start()
            account.replace(stored)
        }
        reload()
    }

    /// Counts a write; returns false if the program is killed at it.
    func survives() -> Bool {
        guard let left = lives else { return true }
        lives = left - 1
        isKilled = left == 1
        return !isKilled
    }

    func read() throws -> StoredSettings {
        guard !isKilled else { throw Failure("killed") }
        return account.stored
    }

    /// A kill at a write leaves the old file or the new one.
    func write(_ stored: StoredSettings) throws {
        let survives = !isKilled && survives()
        if survives || (isKilled && device.starts % 2 == 0) { account.replace(stored) }
        if !survives { throw Failure("killed") }
    }

    func reload() {
        guard !isKilled else { return }
        applied = account.stored.current?.number
        account.checkForce(applied)
        guard let applied, account.natures[applied] == .crashing else { return }
        account.crash(of: applied)
        isKilled = true
    }

    func prepare(_ version: StoredSettings.Version) throws -> SettingsGate.Before {
        if account.natures[version.number] == .invalid { throw Failure("settings 1:1: no") }
        return .init(
            healthy: ["audio"],
            intervalMs: 60_000,
            newIntervalMs: 60_000,
            judgesUploads: true
        )
    }

    func observe(since: BootInstant, _ before: SettingsGate.Before, began: WallTime?)
        -> SettingsGate.Observation
    {
        var observation = SettingsGate.Observation(passed: device.clock.now() - since)
        let nature = applied.flatMap { account.natures[$0] } ?? .good
        observation.isExcused = isOut
        observation.isAccepted = !isOut && nature != .deaf
        observation.sources["audio"] = nature == .failing ? .fails("silent") : .collects
        return observation
    }

    func publish(_ stored: StoredSettings) {}

    func checkTrial(_ reply: JobReply) {
        if case .settings(let version)? = reply.outcome.version { account.checkTrial(version) }
    }
}

extension World {
    /// Sends settings to a device, or has a person take them out of force, and lets time pass.
    func runSettings(_ device: Device, _ chance: inout Chance) throws {
        switch chance.number(0...9) {
        case 0...5: send(to: device, &chance)
        case 6: clearSettings(of: device)
        default: break
        }
        let isOut = chance.isOne(in: 3)
        for _ in 0..<chance.number(1...8) {
            try pass(Int64(chance.one(of: [5000, 30_000, 60_000, 600_000])))
            try settlePower(device)
            device.jobs?.gateway.isOut = isOut
            device.jobs?.gateway.lives = chance.isOne(in: 4) ? chance.number(1...6) : nil
            try turnJobs(device)
            device.jobs?.gateway.lives = nil
            device.jobs?.gateway.isOut = false
        }
    }

    private func send(to device: Device, _ chance: inout Chance) {
        let serial = addReplies(of: device)
        let version = jobs[device.number, default: JobAccount()].settings.draw(&chance)
        let text =
            "{\"id\":\"\(serial)\",\"kind\":\"settings\",\"version\":\(version),"
            + "\"for\":\"sim-\(device.number)\",\"text\":\"\"}"
        jobs[device.number]?.asked.append((serial, text))
    }

    /// As `waypost config remote --clear` does where settings are signed: versions never count twice.
    private func clearSettings(of device: Device) {
        guard var stored = jobs[device.number]?.settings.stored else { return }
        stored.clear("by a person", isSigned: true)
        jobs[device.number]?.settings.replace(stored)
    }

    /// Lets time pass until each trial has ended.
    func passTrials() throws {
        guard plan.hasJobs else { return }
        for _ in 0..<150 where devices.contains(where: { isOnTrial($0) }) {
            try pass(60_000)
            for device in devices {
                try settlePower(device)
                if device.queue == nil { try start(device) }
                try turnJobs(device)
            }
        }
        for device in devices where isOnTrial(device) {
            let stored = jobs[device.number]?.settings.stored
            throw Violation("no end", "device \(device.number): \(String(describing: stored))")
        }
    }

    private func isOnTrial(_ device: Device) -> Bool {
        guard let settings = jobs[device.number]?.settings, !device.account.isDamaged else {
            return false
        }
        let applied = device.jobs?.gateway.applied
        return settings.stored.state == .trial || settings.stored.current?.number != applied
    }
}
