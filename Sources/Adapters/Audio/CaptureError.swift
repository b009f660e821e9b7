// The faults of a capturing device.
import Glibc
import Host
import StatusBoard

/// A fault of an open device.
enum CaptureError: Error, Equatable {
    /// Frames were lost because we read too late (EPIPE).
    case overrun
    /// The system slept (ESTRPIPE).
    case suspended
    /// The device was unplugged, with libasound's message.
    case gone(String)
    /// Any other error of a call.
    case failed(String)
    /// No frames, and no error.
    case stalled
    /// Frames without a signal.
    case silent
    /// The device delivers this multiple of the expected frames.
    case offClock(Double)
    /// The device and this program paused for this long without an error: a paused machine, or a
    /// suspend that the driver does not report.
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

    /// The fault as it counts if no audio has come since the start.
    ///
    /// Then this machine was not too slow, and a device that can be opened is not gone.
    var atStart: Self {
        switch self {
        case .overrun: .failed("stops as soon as it is started")
        case .gone: .failed(message)
        case .suspended, .failed, .stalled, .silent, .offClock, .paused: self
        }
    }

    /// Describes the fault, without the device's name.
    var message: String {
        switch self {
        case .overrun: "overrun: sound was lost because this machine was too slow"
        case .suspended: "the system was suspended"
        case .gone(let message): "is gone (\(message))"
        case .failed(let message): message
        case .stalled: "no sound for \(Liveness.stallSeconds) s"
        case .silent: "no signal for \(SignalMonitor.silenceSeconds) s"
        case .offClock(let ratio):
            "delivers \(Int(min(100, ratio) * 100 + 0.5)) % of the frames that it should"
                + (ratio > 1 ? ": it is not a microphone, or not at the rate that it reports" : "")
        case .paused(let length):
            "stood still for \(Int(length.inSeconds.rounded())) s and did not report it"
        }
    }

    /// Returns a message: the device, the fault, and the step taken.
    func failure(of device: String, step: CaptureRecovery.Step) -> Failure {
        Failure("\(device): \(message); \(step.message)")
    }
}
