// Checks the microphone by listening for a second.
import Audio
import Host
import Setup
import Status
import StatusBoard

struct AudioCheck {
    let input: DoctorInput
    let onLevel: @Sendable (Double) -> Void

    var findings: [Finding] {
        let audio = input.configuration.audio
        guard audio.isEnabled else { return [.ok("sound", "off (audio.enabled = false)")] }
        guard input.listens else { return [held ?? .ok("sound", "not listened to (--no-sound)")] }
        do {
            return [evaluate(try AudioListener(input: input).listen(onLevel: onLevel))]
        } catch {
            return [held ?? without((error as? Failure) ?? Failure("\(error)"))]
        }
    }

    private func evaluate(_ level: AudioProbe.Level) -> Finding {
        let audio = input.configuration.audio
        let message =
            "\(level.device): \(decibels(level.average)) dBFS, peak \(decibels(level.peak)) dBFS"
        guard level.hasSignal else {
            return audio.silence == .ok
                ? .ok("sound", "\(level.device): no signal (audio.silence = \"ok\")")
                : .fail("sound", "\(level.device): no signal", next: Self.unmute)
        }
        if level.deviceRate < audio.rate, let concern = level.concern(audio) {
            return .fail("sound", concern, next: "set audio.rate to what the device delivers")
        }
        if let concern = level.concern(audio) {
            return .warn("sound", concern, next: "lower its gain: `alsamixer`, F4")
        }
        return .ok("sound", message)
    }

    /// The gateway's report on a device that it holds, so that no other process can listen.
    private var held: Finding? {
        guard let source = input.report?.sources["audio"] else { return nil }
        let what = "\(source.device) is held by the gateway"
        switch (source.state, source.reason) {
        case (.loaded, nil): return .ok("sound", "\(what), which hears: \(source.detail)")
        case (.loaded, let reason?):
            return .fail("sound", "\(what), which says: \(reason)", next: "do as it says")
        case (.error, let reason?): return without(Failure("the gateway says: \(reason)"))
        default: return nil
        }
    }

    private static let unmute =
        "unmute it: `alsamixer`, F4 for capture; or the microphone is dead"

    private func without(_ failure: Failure) -> Finding {
        let here = AudioCards().devices().map(\.name)
        let advice =
            here.isEmpty
            ? "no sound card is here: plug one in, or set audio.enabled = false"
            : "`waypost devices` lists what is here: \(here.joined(separator: ", "))"
        return .fail("sound", "\(failure)", next: advice)
    }

    private func decibels(_ level: Double) -> String { "\(Int(level.rounded()))" }
}
