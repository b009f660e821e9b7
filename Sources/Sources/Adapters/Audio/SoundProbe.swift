// A short look at what a microphone hears, without recording it.
internal import Board
internal import Host
internal import Queue
internal import Streams

/// Listens for `doctor`.
package enum SoundProbe {
    /// What was heard.
    package struct Level: Sendable {
        package var device: String
        /// RMS and the highest sample, dBFS.
        package var average: Double
        package var peak: Double
    }

    /// Listens to the first device that opens.
    ///
    /// `onLevel` gets the RMS of each tenth of a second, in dBFS. Throws a Failure that names the devices and
    /// says what to do.
    package static func listen(
        to devices: [String],
        rate: Int,
        channel: Int? = nil,
        for length: Duration,
        onLevel: (Double) -> Void
    ) throws -> Level {
        var pcm = try open(devices, rate: rate, channel: channel)
        let wanted = Int(length.milliseconds) * rate / 1000
        let clock = SystemClock()
        let deadline = clock.now() + length + .seconds(2)
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
        let peak = heard.lazy.map { abs(Double($0)) / 32_768 }.max() ?? 0
        return Level(
            device: pcm.device,
            average: level(heard[...]),
            peak: SoundLevel.decibels(peak * peak)
        )
    }

    private static func level(_ samples: ArraySlice<Int16>) -> Double {
        SoundLevel.decibels(sumOfSquares(samples) / Double(max(1, samples.count)))
    }

    private static func open(_ devices: [String], rate: Int, channel: Int?) throws -> PCM {
        var problems: [Failure] = []
        for device in devices {
            do {
                return try PCM(
                    device: device,
                    rate: rate,
                    channel: channel,
                    wake: .milliseconds(100)
                )
            } catch {
                problems.append((error as? Failure) ?? Failure("\(device): \(error)"))
            }
        }
        throw Failure(
            problems.map(\.message).joined(separator: "; "),
            code: problems.compactMap(\.code).first
        )
    }
}
