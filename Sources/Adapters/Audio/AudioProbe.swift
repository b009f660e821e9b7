// Measures a microphone briefly without recording it.
import Host
import Records

/// Measures microphones for `doctor`.
package enum AudioProbe {
    /// The measured level.
    package struct Level: Sendable, Codable {
        package var device: String
        /// RMS without the DC part and the highest sample, dBFS.
        package var average: Double
        package var peak: Double
        package var hasSignal: Bool
        /// The share of samples at full scale.
        package var clipped: Double
        /// Frames per second of the device.
        package var deviceRate: Int

        /// Returns a warning about problems that do not stop recording; nil if there are none.
        package func concern(_ settings: AudioSettings) -> String? {
            settings.concern(device, deviceRate: deviceRate, clipped: clipped)
        }
    }

    /// Listens for one second to the first device of `audio` that opens.
    package static func listen(
        to audio: AudioSettings,
        onLevel: (Double) -> Void
    ) throws -> Level {
        if let name = audio.devices.first(where: { !DeviceName.isAllowed($0) }) {
            throw Failure("\"\(printable(name))\" is not an allowed device name")
        }
        return try listen(
            to: audio.devices,
            rate: audio.rate,
            channel: audio.channel,
            for: .seconds(1),
            onLevel: onLevel
        )
    }

    /// Listens to the first device that opens.
    ///
    /// `onLevel` gets the RMS of each tenth of a second, in dBFS. Throws a `Failure` with the
    /// devices and a remedy.
    package static func listen(
        to devices: [String],
        rate: Int,
        channel: Int? = nil,
        for length: Duration,
        onLevel: (Double) -> Void
    ) throws -> Level {
        var pcm = try PCM.first(of: devices) { index in
            try PCM(
                device: devices[index],
                rate: rate,
                channel: channel,
                wake: .milliseconds(100)
            )
        }
        let heard = try record(&pcm, rate: rate, for: length, onLevel: onLevel)
        let given = pcm.removeHeard()
        let peak = heard.lazy.map { abs(Double($0)) / 32_768 }.max() ?? 0
        return Level(
            device: pcm.device,
            average: level(heard[...]),
            peak: AudioLevel.decibels(peak * peak),
            // Only the second half counts, because many devices start with a click.
            hasSignal: given.blocks.suffix(given.blocks.count / 2).reduce(SampleSums(), +)
                .hasSignal,
            clipped: Double(given.clipped) / Double(given.frames),
            deviceRate: pcm.shape.rate
        )
    }

    /// Records for `length`, and longer until that much sound has come.
    private static func record(
        _ pcm: inout PCM,
        rate: Int,
        for length: Duration,
        onLevel: (Double) -> Void
    ) throws -> [Int16] {
        let wanted = Int(length.milliseconds) * rate / 1000
        let clock = SystemClock()
        let started = clock.now()
        // A sound server may begin with a backlog, so the pace is that of the second half.
        var half = (frames: Int64(0), at: started)
        var (heard, now, shown) = ([Int16](), started, 0)
        while heard.count < wanted || now - started < length {
            guard now - started < length + .seconds(2) else {
                throw Failure(
                    "\(pcm.device): no sound comes; unplug the microphone and plug it in again"
                )
            }
            if pcm.wait(milliseconds: 100) { _ = try pcm.read(into: &heard, limit: rate * 4) }
            while heard.count - shown >= rate / 10 {
                onLevel(level(heard[shown..<(shown + rate / 10)]))
                shown += rate / 10
            }
            now = clock.now()
            try check(pcm, 0, since: started, now, slack: Liveness.backlog)
            if now - started < length / 2 { half = (pcm.framesRead, now) }
        }
        // Finds gross errors only: half a second is too short for more.
        try check(pcm, half.frames, since: half.at, now, slack: 0.35 * length.inSeconds)
        return heard
    }

    /// Throws a `Failure` if more frames came since `start` than time passed and `slack` seconds.
    private static func check(
        _ pcm: borrowing PCM,
        _ frames: Int64,
        since start: BootInstant,
        _ now: BootInstant,
        slack: Double
    ) throws {
        let given = Double(pcm.framesRead - frames) / Double(pcm.shape.rate)
        let passed = (now - start).inSeconds
        guard given > passed + slack else { return }
        let fault = CaptureError.offClock(given / max(0.001, passed))
        throw Failure("\(pcm.device): \(fault.message)")
    }

    private static func level(_ samples: ArraySlice<Int16>) -> Double {
        AudioLevel.decibels(SampleSums(samples).variance())
    }
}
