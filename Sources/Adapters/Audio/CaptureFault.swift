// What goes wrong with a device that is being captured.
import Glibc
import Host
import StatusBoard

/// A fault of a device that was open.
enum CaptureFault: Error, Equatable {
    /// We were too late, and frames were lost (EPIPE).
    case overrun
    /// The system slept (ESTRPIPE).
    case suspended
    /// Unplugged, with libasound's message.
    case gone(String)
    /// Any other error of a call.
    case failed(String)
    /// No frames, and no error.
    case stalled
    /// Frames without any signal in them.
    case silent
    /// Delivers this many times the frames that it should.
    case offClock(Double)
    /// Stood still for so long without an error, and this program with it: a paused machine, a suspend that the
    /// driver does not report.
    case paused(Duration)

    init(_ error: ALSAError) {
        self =
            switch -error.code {
            case EPIPE: .overrun
            case ESTRPIPE: .suspended
            case ENODEV, ENOTTY, EBADFD, ENXIO, ENOENT: .gone(error.description)
            default: .failed(error.description)
            }
    }

    /// What it counts as where no sound came since the start: then this machine was not too slow, and a device that can be
    /// opened is not gone.
    var atStart: Self {
        switch self {
        case .overrun: .failed("stops as soon as it is started")
        case .gone: .failed(message)
        case .suspended, .failed, .stalled, .silent, .offClock, .paused: self
        }
    }

    /// What happened, without the device's name.
    var message: String {
        switch self {
        case .overrun: "overrun: sound was lost because this machine was too slow"
        case .suspended: "the system was suspended"
        case .gone(let message): "is gone (\(message))"
        case .failed(let message): message
        case .stalled: "no sound for \(Liveness.stallSeconds) s"
        case .silent: "no signal for \(SignalMonitor.silenceSeconds) s"
        case .offClock(let ratio):
            "delivers \((ratio * 1000).rounded() / 10) % of the frames that it should"
        case .paused(let length):
            "stood still for \(Int(length.inSeconds.rounded())) s and did not report it"
        }
    }

    /// As a person is told: the device, what happened, what is done about it.
    func failure(of device: String, step: CaptureRecovery.Step) -> Failure {
        Failure("\(device): \(message); \(step.message)")
    }
}
