// What is done about a fault, and what if it comes again.
import Host

/// The recovery of a faulty device: start it again, open it again, take the next one, wait; a pure value.
///
/// A stage is climbed each time a fault comes before the device has worked for half a minute. An overrun is no
/// fault of the device and never costs it more than a new start.
struct CaptureRecovery {
    enum Step: Equatable {
        /// Stop, prepare and start the open device.
        case restart
        /// Close it and open it.
        case reopen
        /// Go on with the next device of the list, after the last with the first.
        case next
        /// Tell, wait, and begin with the first device.
        case wait

        /// As the end of a sentence on what happened.
        var message: String {
            switch self {
            case .restart: "starting it again"
            case .reopen: "opening it again"
            case .next: "trying the next device"
            case .wait: "trying again soon; unplug the microphone and plug it in again"
            }
        }
    }

    /// A device that worked for so long is well again.
    private static let proof = Duration.seconds(30)
    /// A device that stays silent is left alone for so long: it may be muted, and that is legal.
    private static let silencePause = Duration.seconds(3600)

    private let devices: Int
    private var stage = 0
    private var lastFault: BootInstant?
    private var silentUntil: [Int: BootInstant] = [:]
    /// A device that was returned to from one that worked, and since when.
    private var trial: (device: Int, since: BootInstant)?
    /// How often in a row that came to nothing.
    private var vainReturns = 0

    init(devices: Int) {
        self.devices = devices
    }

    /// Whether silence of a device is to be treated as a fault now.
    func treatsSilence(of device: Int, at now: BootInstant) -> Bool {
        silentUntil[device].map { now >= $0 } ?? true
    }

    /// How long a device stays when a better one gives no sign of its own: each look at that costs some seconds of
    /// sound, so they come less often where they come to nothing.
    var returnPause: Duration { .seconds(600 << min(vainReturns, 4)) }

    /// A better device is opened in place of one that works.
    mutating func returns(to device: Int, at now: BootInstant) {
        trial = (device, now)
        vainReturns += 1
    }

    /// Whether a device is on trial, and fails it.
    private mutating func failsTrial(
        _ device: Int,
        _ fault: CaptureFault,
        at now: BootInstant
    ) -> Bool {
        guard let trial, trial.device == device else { return false }
        self.trial = nil
        guard now - trial.since < Self.proof else {
            vainReturns = 0
            return false
        }
        if fault == .silent { silentUntil[device] = now + Self.silencePause }
        return true
    }

    /// The next step after a fault of device number `device`.
    mutating func step(after fault: CaptureFault, of device: Int, at now: BootInstant) -> Step {
        if let last = lastFault, now - last >= Self.proof { stage = 0 }
        lastFault = now
        switch fault {
        case .overrun, .suspended, .paused: return .restart
        // If that fails, the others get their turn.
        case .gone: return .reopen
        case .failed, .stalled, .silent, .offClock: break
        }
        // Another one worked: nothing is to be tried twice at its cost.
        if failsTrial(device, fault, at: now) {
            stage = 0
            return .next
        }
        stage += 1
        // The last thing that can be done about silence is being done.
        if fault == .silent, stage >= (devices > 1 ? 3 : 2) {
            silentUntil[device] = now + Self.silencePause
        }
        switch stage {
        case 1: return .restart
        case 2: return .reopen
        default:
            // Nothing helped. Silence is better than nothing: if every device is silent, the first is recorded.
            stage = 0
            return device + 1 < devices || fault == .silent ? .next : .wait
        }
    }
}
