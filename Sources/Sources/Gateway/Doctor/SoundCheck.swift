// A second of what the microphone hears.
internal import Audio
internal import Board

struct SoundCheck {
    let input: DoctorInput
    let onLevel: @Sendable (Double) -> Void

    var findings: [Finding] {
        let audio = input.configuration.audio
        guard audio.isEnabled else { return [.ok("sound", "off (audio.enabled = false)")] }
        do {
            let level = try SoundProbe.listen(
                to: audio.devices,
                rate: audio.rate,
                channel: audio.channel,
                for: .seconds(1),
                onLevel: onLevel
            )
            return [judge(level)]
        } catch {
            let failure = (error as? Failure) ?? Failure("\(error)")
            return [held(failure) ?? without(failure)]
        }
    }

    private func judge(_ level: SoundProbe.Level) -> Finding {
        let message =
            "\(level.device): \(decibels(level.average)) dBFS, peak \(decibels(level.peak)) dBFS"
        if level.peak <= -119 {
            return .fail(
                "sound",
                "\(level.device): only digital silence",
                next: Self.unmute
            )
        }
        if level.peak >= -0.1 {
            return .warn(
                "sound",
                "\(message): it is overdriven",
                next: "lower its gain: `alsamixer`, F4"
            )
        }
        return .ok("sound", message)
    }

    /// The gateway has the device: what it hears is what there is.
    private func held(_ failure: Failure) -> Finding? {
        guard let source = input.report?.sources["audio"], source.state == "loaded" else {
            return nil
        }
        let what = "\(source.device) is held by the gateway, which hears: \(source.detail)"
        return source.detail.hasPrefix("only digital silence")
            ? .fail("sound", what, next: Self.unmute) : .ok("sound", what)
    }

    private static let unmute =
        "unmute it: `alsamixer`, F4 for capture; or the microphone is dead"

    private func without(_ failure: Failure) -> Finding {
        let here = SoundCards().devices().map(\.name)
        let advice =
            here.isEmpty
            ? "no sound card is here: plug one in, or set audio.enabled = false"
            : "`waypost devices` lists what is here: \(here.joined(separator: ", "))"
        return .fail("sound", "\(failure)", next: advice)
    }

    private func decibels(_ level: Double) -> String { "\(Int(level.rounded()))" }
}
