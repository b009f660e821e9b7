// Jobs of the server, done by the real runner.
internal import Host
internal import Queue
internal import Records
internal import Remote
internal import SimulatedDisk

/// The jobs of one device: a job's id is the serial number of its first reply.
///
/// The next two are those of `kept` and `rolled_back`, which only settings have.
struct JobAccount {
    /// Each with the list's text for it.
    var asked: [(serial: Int, text: String)] = []
    var settings = SettingsAccount()
    /// How often each was done.
    var done: [Int: Int] = [:]
    /// Those whose replies are on the disk, as the runner was told.
    var answered: Set<Int> = []
}

/// The runner of one program.
final class JobProgram {
    let gateway: SimulatedGateway
    private var runner: JobRunner
    private let offers: OfferedJobs
    private let stop: StopSignal
    private var hasRestored = false

    init(_ world: World, _ device: Device, _ queue: Queue) throws {
        (offers, stop) = (try OfferedJobs(), try StopSignal())
        gateway = SimulatedGateway(world, device)
        gateway.start()
        let trial = SettingsTrial(gateway, device.clock)
        runner = JobRunner(queue, device.clock, offers, gateway, settings: trial) {
            [gateway] reply, memos, _ in gateway.commit(reply, memos, queue)
        }
    }

    /// Does what is due, as after an answer of the server that offers `tag`.
    func turn(_ queue: Queue, _ tag: String) {
        guard queue.generation > 0 else { return }
        if !hasRestored { runner.restore() }
        hasRestored = true
        offers.offer(tag)
        _ = runner.turn(until: stop)
    }
}

/// The gateway that a runner sees: its jobs do nothing and are counted.
final class SimulatedGateway: JobGateway, @unchecked Sendable {
    // Unchecked because a simulated world has one thread.
    unowned let world: World
    unowned let device: Device
    /// The program is killed while it does its next job.
    var isCut = false
    var isKilled = false
    /// It is killed at this one of its next writes.
    var lives: Int?
    /// Nothing can be uploaded, and the settings are not the cause.
    var isOut = false
    /// The version of the settings in force.
    var applied: Int64?
    /// The commit that the runner waits for.
    private var waiting: (memos: [String: String], isStored: StateBox<Bool?>)?

    init(_ world: World, _ device: Device) { (self.world, self.device) = (world, device) }

    var remote: RemoteSettings {
        var settings = RemoteSettings()
        settings.allow = [RemoteSettings.operate, RemoteSettings.settings]
        return settings
    }

    var interval: Duration { .zero }

    func fetch(until stop: StopSignal) -> [UInt8]? {
        isKilled ? nil : Array(world.jobList(of: device).utf8)
    }

    func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome? {
        guard !isKilled, case .restart(let name) = action, let serial = Int(name) else {
            return nil
        }
        world.jobs[device.number, default: JobAccount()].done[serial, default: 0] += 1
        isKilled = isCut
        return isKilled ? nil : JobOutcome(.done)
    }

    func uploadReplies() {}
    func publish(_ reply: JobReply) {}
    func warn(_ what: String) { world.log?("  jobs: \(what)") }

    /// As on the runner's thread, which waits for the writer: asked again, it looks only whether the
    /// commit is done.
    func commit(_ reply: JobReply?, _ memos: [String: String], _ queue: Queue) -> Bool {
        guard !isKilled, survives() else { return false }
        if waiting?.isStored.value != nil, waiting?.memos != memos { waiting = nil }
        if waiting == nil { put(reply, memos, queue) }
        try? device.turn()
        guard let waiting, waiting.memos == memos, let isStored = waiting.isStored.value else {
            return false
        }
        self.waiting = nil
        if isStored, let reply, let serial = reply.serial {
            world.jobs[device.number]?.answered.insert(serial)
            if reply.outcome.state == .trial { checkTrial(reply) }
        }
        return isStored
    }

    private func put(_ reply: JobReply?, _ memos: [String: String], _ queue: Queue) {
        let isStored = StateBox<Bool?>(nil)
        waiting = (memos, isStored)
        guard let reply, let serial = reply.serial else {
            return queue.put([], memos: memos) { error in isStored.update { $0 = error == nil } }
        }
        let promise = world.promise(reply, serial, device)
        queue.put(reply, memos: memos) { error in
            promise.answer(error)
            isStored.update { $0 = error == nil }
        }
    }
}

extension World {
    /// Asks a device for something, and has it do what it was asked for.
    func runJobs(_ device: Device, _ chance: inout Chance) throws {
        let serial = addReplies(of: device)
        let kind = chance.number(0...5)
        let past = ",\"until\":\"\(WallTime(milliseconds: now - 1000).rfc3339)\""
        let text =
            "{\"id\":\"\(serial)\",\"kind\":\"\(kind == 0 ? "dance" : "restart")\""
            + ",\"source\":\"\(serial)\"\(kind == 1 ? past : "")}"
        jobs[device.number, default: JobAccount()].asked.append((serial, text))
        device.jobs?.gateway.isCut = chance.isOne(in: 3)
        try turnJobs(device)
        device.jobs?.gateway.isCut = false
    }

    /// Returns the first of new serial numbers, for replies to a job.
    func addReplies(of device: Device) -> Int {
        let known = Known(
            stream: Stream.replies.number,
            boot: device.boot,
            boottime: 0,
            wall: 0,
            truth: 0
        )
        let serials = (0..<JobReply.serials).map { _ in truth.add(known) }
        return serials[0]
    }

    /// The list as the server sends it: without the jobs whose replies it has.
    func jobList(of device: Device) -> String {
        let open = (jobs[device.number]?.asked ?? []).filter { job in
            !(0..<JobReply.serials).contains { server.serials.contains(job.serial + $0) }
        }
        return "{\"tag\":\"\(offered)\",\"jobs\":[\(open.map(\.text).joined(separator: ","))]}"
    }

    /// Has a device fetch and do its jobs; each call offers another tag.
    func turnJobs(_ device: Device) throws {
        guard let queue = device.queue, let program = device.jobs else { return }
        offered += 1
        program.turn(queue, "\(offered)")
        try settlePower(device)
        if program.gateway.isKilled {
            device.vanish()
            device.disk.kill()
            try start(device)
        }
        try checkJobs(device)
    }

    /// Registers a reply when it is stored, with the time of its outcome.
    fileprivate func promise(_ reply: JobReply, _ serial: Int, _ device: Device) -> Promise {
        let (boot, wall) = (reply.stamp.boot.milliseconds, reply.stamp.wall.milliseconds)
        truth.records[serial] = Known(
            stream: Stream.replies.number,
            boot: device.boot,
            boottime: boot,
            wall: wall,
            truth: truth.boots[device.boot].origin + boot
        )
        // A crash has cost the first answer, and the job is answered again.
        let number = Stream.replies.number
        if device.account.taken[number]?.contains(serial) ?? false {
            device.account.taken[number]?.removeAll { $0 == serial }
            device.account.gap[number, default: 0] -= 1
        }
        return device.promise([serial], number)
    }

    private func checkJobs(_ device: Device) throws {
        guard !device.account.isDamaged, let account = jobs[device.number] else { return }
        for (serial, times) in account.done where times > 1 {
            throw Violation(
                "done twice",
                "job \(serial) of device \(device.number): \(times) times"
            )
        }
        if let found = account.settings.found { throw found }
    }

    /// Checks that each job was answered, once there are no faults.
    func checkAnswers(_ device: Device) throws {
        guard !device.account.isDamaged, let account = jobs[device.number] else { return }
        for (asked, _) in account.asked {
            let serial = account.settings.ends[asked] ?? asked
            if account.answered.contains(serial) || server.serials.contains(serial) { continue }
            // Killed before it knew that the reply was stored; a server that refuses all has had it quarantined.
            let here = Presence(device.disk, streams: StreamList.builtIn)
            if here.records.contains(serial) { continue }
            throw Violation(
                "not answered",
                "job \(serial) of device \(device.number), done \(account.done[serial] ?? 0) times"
            )
        }
    }
}
