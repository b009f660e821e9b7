// One simulated device: disk, clocks, the gateway's queue, and its sources.
internal import Host
internal import Live
internal import Queue
internal import Records
internal import SimulatedDisk

/// Random numbers for the program on a device.
final class RandomBox: @unchecked Sendable {
    // Unchecked because a simulated world has one thread.
    private var chance: Chance

    init(_ seed: UInt64) { chance = Chance(seed) }

    func next() -> UInt64 { chance.next() }
}

/// A run of audio that is being captured.
struct AudioSource {
    var run: AudioRun
    var number: Int
    var index = 0
    /// The start of its next segment.
    var next: Stamp
    var truth: Int64
    /// The clock error of its frames in parts per million.
    var drift: Int64
}

/// One device of a world.
final class Device: AccountHolder {
    static let path = "/state/queue.sqlite"

    let number: Int
    let disk: SimulatedDisk
    let random: RandomBox
    var account = Account()
    var effort = EffortAudit()
    /// The database's generation and its newest effort record when that was last read.
    var effortSeen: [Int64] = []
    private(set) var clock = ManualClock(
        Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
    )
    /// The number of the current boot, in `Truth.boots`.
    private(set) var boot = 0
    var queue: Queue?
    /// The queue of a killed program: its connections are closed only once their handles are dead,
    /// or they would write.
    private var gone: Queue?
    var limits = StorageLimits()
    var memoryLimit = 1000
    var lengthensJournal = false
    var userStreams: [DeclaredStream] = []
    var sound: AudioSource?
    var heldSound = SoundUpload()
    var syncer: Syncer?
    var jobs: JobProgram?
    var storage = StorageAudit()
    /// A live output that hangs: it takes nothing of what it gets, and nothing else may change.
    ///
    /// Half of the devices have one, by their seed, so that no other draw changes.
    let live: LiveTap?
    private(set) var starts = 0
    /// Something has not arrived at the server, or not on the disk.
    var isBusy: Bool {
        guard let queue, queue.isAllOnDisk else { return true }
        return queue.statistics(dated: false).contains { $0.pending > 0 }
    }

    init(_ number: Int, _ disk: SimulatedDisk, seed: UInt64) {
        self.number = number
        self.disk = disk
        random = RandomBox(seed)
        live = seed % 2 == 0 ? try? LiveTap(interval: .seconds(10)) : nil
        live?.open(at: BootInstant(nanoseconds: 0))
    }

    /// Boots the machine, with an arbitrary wall clock.
    func boot(_ truth: inout Truth, at now: Int64, offset: Int64, uptime: Int64) {
        boot = truth.boots.count
        truth.boots.append(Boot(name: "boot-\(number)-\(boot)", origin: now - uptime))
        clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: uptime * 1_000_000),
                wall: WallTime(milliseconds: now + offset)
            )
        )
    }

    func settings(of truth: Truth) -> QueueSettings {
        var settings = QueueSettings(
            path: Self.path,
            bootID: truth.boots[boot].name,
            commitInterval: .seconds(1),
            clock: clock,
            appVersion: "sim"
        )
        settings.isTurnedByHand = true
        settings.disk = DiskAdapter(disk: disk)
        settings.limits = limits
        settings.memoryLimit = memoryLimit
        settings.lengthensJournal = lengthensJournal
        settings.userStreams = userStreams
        settings.sound = StateBox(heldSound)
        settings.reserveBytes = 16_384
        let random = random
        settings.random = { random.next() }
        return settings
    }

    /// Starts the program; if that fails, it is started again later.
    func start(_ truth: Truth) {
        gone = nil
        starts += 1
        effortSeen = []
        sound = nil
        account.isUnchecked = account.isDamaged && disk.hasFaults
        queue = try? Queue(settings: settings(of: truth))
    }

    /// Kills the program.
    func vanish() {
        gone = queue ?? gone
        queue = nil
        syncer = nil
        jobs = nil
        sound = nil
        account.vanish()
        if !disk.hasFaults { account.hasFailedWrite = false }
        account.isLate = disk.mayRefuse
    }

    /// Runs the writer and the maintenance until they have nothing to do.
    func turn() throws {
        guard let queue else { return }
        for _ in 0..<10_000 {
            let delay = queue.turn()
            let isBusy = queue.turnMaintenance()
            if queue.isAllOnDisk { account.settle(isRecording: sound != nil) }
            guard isBusy || delay.map({ $0 <= .milliseconds(1) }) ?? false else { return }
        }
        throw Violation("busy", "device \(number) never comes to rest")
    }

    var now: (boottime: Int64, wall: Int64) {
        let stamp = clock.stamp()
        return (stamp.boot.milliseconds, stamp.wall.milliseconds)
    }
}
