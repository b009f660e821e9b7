// Chooses the recovery step after a fault, and the next one if it recurs.
import Host

/// Recovers a faulty device: restart, reopen, next device, wait; a pure value.
///
/// Each fault within half a minute of the last one escalates by one step. An overrun is not the
/// device's fault and never costs more than a restart.
struct CaptureRecovery {
    enum Step: Equatable {
        /// Stop, prepare and start the open device.
        case restart
        /// Close and reopen the device.
        case reopen
        /// Open the next device of the list; after the last, the first.
        case next
        /// Report the fault, wait, and begin with the first device.
        case wait

        /// The step as the end of a fault message.
        var message: String {
            switch self {
            case .restart: "starting it again"
            case .reopen: "opening it again"
            case .next: "trying the next device"
            case .wait: "trying again soon; unplug the microphone and plug it in again"
            }
        }
    }

    /// Backoff for an absent device, where an attempt is cheap: one call of open.
    static let absentSteps: [Duration] =
        [.milliseconds(200), .seconds(1), .seconds(2), .seconds(4)]
    /// Backoff for a broken device: quick for some minutes, then slower.
    static let brokenSteps: [Duration] =
        [.seconds(1), .seconds(2)] + Array(repeating: .seconds(4), count: 60) + [.seconds(30)]
    /// A device that has worked for this long is healthy again.
    private static let proof = Duration.seconds(30)
    /// How long a silent device is left alone: it may be muted on purpose.
    private static let silencePause = Duration.seconds(3600)

    private let devices: Int
    private var stage = 0
    private var lastFault: BootInstant?
    private var silentUntil: [Int: BootInstant] = [:]
    /// The preferred device that is on trial, and the start of its trial.
    ///
    /// Until then a lesser device was working.
    private var trial: (device: Int, since: BootInstant)?
    /// Consecutive returns to a preferred device that did not last.
    private var failedReturns = 0

    init(devices: Int) {
        self.devices = devices
    }

    /// Returns whether a device's silence counts as a fault now.
    func treatsSilence(of device: Int, at now: BootInstant) -> Bool {
        silentUntil[device].map { now >= $0 } ?? true
    }

    /// How long to stay on a working device before trying a preferred one.
    ///
    /// Each attempt costs some seconds of audio, so each failed return doubles the pause, up to 160
    /// minutes.
    var returnPause: Duration { .seconds(600 << min(failedReturns, 4)) }

    /// Notes that a preferred device replaces a working one, and puts it on trial.
    mutating func returns(to device: Int, at now: BootInstant) {
        trial = (device, now)
        failedReturns += 1
    }

    /// Ends the trial of a faulty device, if it is on trial; returns true if it failed the trial.
    private mutating func endTrial(
        _ device: Int,
        _ fault: CaptureError,
        at now: BootInstant
    ) -> Bool {
        guard let trial, trial.device == device else { return false }
        self.trial = nil
        guard now - trial.since < Self.proof else {
            failedReturns = 0
            return false
        }
        if fault == .silent { silentUntil[device] = now + Self.silencePause }
        return true
    }

    /// Returns the next step after a fault of device number `device`.
    mutating func step(after fault: CaptureError, of device: Int, at now: BootInstant) -> Step {
        if let last = lastFault, now - last >= Self.proof { stage = 0 }
        lastFault = now
        switch fault {
        case .overrun, .suspended, .paused: return .restart
        // If reopening fails, the caller tries the other devices.
        case .gone: return .reopen
        case .failed, .stalled, .silent, .offClock: break
        }
        // Another device was working: go back to it at once instead of escalating.
        if endTrial(device, fault, at: now) {
            stage = 0
            return .next
        }
        stage += 1
        // No further step for silence: accept it for an hour.
        if fault == .silent, stage >= (devices > 1 ? 3 : 2) {
            silentUntil[device] = now + Self.silencePause
        }
        switch stage {
        case 1: return .restart
        case 2: return .reopen
        default:
            // All steps failed. If every device is silent, record the first one anyway.
            stage = 0
            return device + 1 < devices || fault == .silent ? .next : .wait
        }
    }
}
