// Measures a microphone briefly without recording it.
import Host
import Records

/// Measures microphones for `doctor`.
package enum SoundProbe {
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
        let wanted = Int(length.milliseconds) * rate / 1000
        let clock = SystemClock()
        let started = clock.now()
        let deadline = started + length + .seconds(2)
        var heard: [Int16] = []
        var shown = 0
        while heard.count < wanted {
            guard clock.now() < deadline else {
                throw Failure(
                    "\(pcm.device): no sound comes; unplug the microphone and plug it in again"
                )
            }
            if pcm.wait(milliseconds: 100) { _ = try pcm.read(into: &heard, limit: rate / 10) }
            while heard.count - shown >= rate / 10 {
                onLevel(level(heard[shown..<(shown + rate / 10)]))
                shown += rate / 10
            }
        }
        let ratio = length / max(.milliseconds(1), clock.now() - started)
        // A sound server may begin with a backlog.
        guard ratio < 1.7 else {
            throw Failure("\(pcm.device): \(CaptureFault.offClock(ratio).message)")
        }
        let given = pcm.takeHeard()
        let peak = heard.lazy.map { abs(Double($0)) / 32_768 }.max() ?? 0
        return Level(
            device: pcm.device,
            average: level(heard[...]),
            peak: SoundLevel.decibels(peak * peak),
            // Only the second half counts, because many devices start with a click.
            hasSignal: given.blocks.suffix(given.blocks.count / 2).reduce(SampleSums(), +)
                .hasSignal,
            clipped: Double(given.clipped) / Double(given.frames),
            deviceRate: pcm.shape.rate
        )
    }

    private static func level(_ samples: ArraySlice<Int16>) -> Double {
        SoundLevel.decibels(SampleSums(samples).variance())
    }
}
