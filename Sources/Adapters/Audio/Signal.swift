// Detects silent, dead and clipping microphones from their samples.
import Host
import Records

/// Sums over samples that give level and signal.
struct SampleSums: Equatable {
    /// Below -100 dBFS, a third of a 16-bit step, there is no signal, because every microphone has
    /// more noise.
    private static let noSignal = 1e-10

    private(set) var count = 0
    /// In 16-bit steps; exact for integers: a double adds up 8 million squares without rounding.
    private var sum = 0.0
    private var squares = 0.0

    init() {}

    init(_ samples: some Sequence<Int16>) {
        for sample in samples { add(Double(sample)) }
    }

    /// Sums values with full scale 1.
    init(values: some Sequence<Float>) {
        for value in values { add(Double(value) * 32_768) }
    }

    private mutating func add(_ steps: Double) {
        count += 1
        sum += steps
        squares += steps * steps
    }

    static func + (left: Self, right: Self) -> Self {
        var all = left
        all.count += right.count
        all.sum += right.sum
        all.squares += right.squares
        return all
    }

    /// Returns the mean square without the DC part, full scale 1; over `frames` if zeros pad the
    /// samples.
    func variance(over frames: Int? = nil) -> Double {
        let count = Double(max(1, frames ?? count))
        let mean = sum / count
        return max(0, squares / count - mean * mean) / (32_768 * 32_768)
    }

    /// True if there is a signal; a constant value, whatever it is, is not one.
    var hasSignal: Bool { variance() >= Self.noSignal }
}

/// Sums of the samples that a device delivered since the last evaluation.
///
/// `PCM` takes them before it resamples and rounds, which would remove a quiet microphone's noise.
struct HeardAudio {
    /// Sums over a tenth of a second each, or less.
    var blocks: [SampleSums] = []
    /// Frames at full scale.
    var clipped = 0

    var frames: Int { blocks.reduce(0) { $0 + $1.count } }
}

/// Evaluates a device's signal over seconds and minutes; a pure value that outlives runs.
struct SignalMonitor {
    /// A device without a signal for this long is restarted: it may have been set up wrong.
    static let silenceSeconds = 4
    /// A microphone without a signal for this long is dead or muted.
    static let deadSeconds = 300
    /// A share of full-scale samples in a minute above this is clipping.
    static let clippingShare = 0.01

    private var window = SampleSums()
    /// Seconds without a signal in a row, over all runs and in this one.
    private var silent = (inAll: 0.0, inRun: 0.0)
    private var minute = (frames: 0, clipped: 0)
    /// The share of full-scale samples in the last whole minute.
    private(set) var clipped = 0.0

    /// Starts another run of the same device.
    mutating func begin() {
        silent.inRun = 0
        window = SampleSums()
    }

    /// Adds a device's samples at its own `rate`; evaluates a tenth of a second at a time.
    mutating func hear(_ sound: HeardAudio, rate: Int) {
        for block in sound.blocks {
            window = window + block
            guard window.count >= rate / 10 else { continue }
            let length = Double(window.count) / Double(rate)
            silent = window.hasSignal ? (0, 0) : (silent.inAll + length, silent.inRun + length)
            window = SampleSums()
        }
        minute.frames += sound.frames
        minute.clipped += sound.clipped
        guard minute.frames >= 60 * rate else { return }
        self.clipped = Double(minute.clipped) / Double(minute.frames)
        minute = (0, 0)
    }

    var isSilent: Bool { silent.inRun >= Double(Self.silenceSeconds) }

    var isDead: Bool { silent.inAll >= Double(Self.deadSeconds) }
}

extension SignalMonitor {
    /// Returns the message for a microphone that has long been dead.
    static func failure(of device: String) -> Failure {
        Failure(
            "\(device): no signal for \(deadSeconds / 60) minutes: muted, or a dead microphone; unmute it with "
                + "`alsamixer` (F4), replace it, or set audio.silence = \"ok\""
        )
    }
}

extension AudioSettings {
    /// Returns a warning about problems that do not stop recording; nil if there are none.
    ///
    /// `deviceRate`: frames per second of the device.
    func concern(_ device: String, deviceRate: Int, clipped: Double) -> String? {
        var concerns: [String] = []
        if deviceRate < rate { concerns.append(Self.slowness(device, deviceRate, rate)) }
        if clipped > SignalMonitor.clippingShare {
            let share = (clipped * 1000).rounded() / 10
            concerns.append(
                "\(device): \(share) % of the samples are clipped; lower the gain with `alsamixer` (F4)"
            )
        }
        return concerns.isEmpty ? nil : concerns.joined(separator: "; ")
    }

    /// Describes what is heard, for `status`.
    func detail(
        _ segment: Segment,
        _ signal: SignalMonitor,
        _ device: String,
        channel: Int?
    ) -> String {
        if signal.isSilent { return "no signal from \(device): muted, or a dead microphone?" }
        let level = AudioLevel.decibels(segment.meanSquare).rounded()
        let channel = channel.map { " of channel \($0)" } ?? ""
        return "\(rate / 1000) kHz mono\(channel), \(Int(level)) dBFS"
    }

    private static func slowness(_ device: String, _ deviceRate: Int, _ rate: Int) -> String {
        "\(device): delivers \(deviceRate) Hz, less than audio.rate = \(rate), and nothing above "
            + "\(deviceRate / 2) Hz; set audio.rate to \(deviceRate) or less"
    }
}
