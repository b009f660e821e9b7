// What samples say about a microphone: its level, whether there is any signal, whether it clips.
import Host

/// Sums over samples, from which level and signal follow.
struct SampleSums: Equatable {
    /// Below -100 dBFS, a third of a 16-bit step, no microphone is heard: each has more noise of its own.
    private static let noSignal = 1e-10

    private(set) var count = 0
    /// In steps of 16 bits: exact for whole ones, of which a double holds the squares of 8 million.
    private var sum = 0.0
    private var squares = 0.0

    init() {}

    init(_ samples: some Sequence<Int16>) {
        for sample in samples { add(Double(sample)) }
    }

    /// Values whose full scale is 1.
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

    /// The mean of the squares without the DC part, full scale 1; over `frames` if zeros fill up what was counted.
    func variance(over frames: Int? = nil) -> Double {
        let count = Double(max(1, frames ?? count))
        let mean = sum / count
        return max(0, squares / count - mean * mean) / (32_768 * 32_768)
    }

    /// Something is heard: a line that stands at one value, whichever it is, has no signal.
    var hasSignal: Bool { variance() >= Self.noSignal }
}

/// What a device gave, before it was resampled and rounded: both take a quiet microphone's noise away.
struct HeardSound {
    /// A tenth of a second each, or less.
    var blocks: [SampleSums] = []
    /// Frames at full scale.
    var clipped = 0

    var frames: Int { blocks.reduce(0) { $0 + $1.count } }
}

/// Judges what a device delivers over seconds and minutes; a pure value, kept from one run to the next.
struct SignalMonitor {
    /// Without a signal for so long a device is started again: it may have been set up wrong.
    static let silenceSeconds = 4
    /// Without a signal for so long its microphone is dead, or muted.
    static let deadSeconds = 300
    /// More samples than this at full scale in a minute are clipping.
    static let clippingShare = 0.01

    private var window = SampleSums()
    /// Seconds without a signal in a row, over all runs and in this one.
    private var silent = (inAll: 0.0, inRun: 0.0)
    private var minute = (frames: 0, clipped: 0)
    /// The part of the samples at full scale in the last whole minute.
    private(set) var clipped = 0.0

    /// Begins another run of the same device.
    mutating func begin() {
        silent.inRun = 0
        window = SampleSums()
    }

    /// Takes what the device gave at its own `rate`; a tenth of a second is judged at a time.
    mutating func hear(_ sound: HeardSound, rate: Int) {
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
    /// As a person is told of a microphone that has been dead for long.
    static func failure(of device: String) -> Failure {
        Failure(
            "\(device): no signal for \(deadSeconds / 60) minutes: muted, or a dead microphone; unmute it with "
                + "`alsamixer` (F4), replace it, or set audio.silence = \"ok\""
        )
    }
}

extension AudioSettings {
    /// What is wrong with sound that is recorded all the same; `deviceRate`: frames per second of the device.
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

    private static func slowness(_ device: String, _ deviceRate: Int, _ rate: Int) -> String {
        "\(device): delivers \(deviceRate) Hz, less than audio.rate = \(rate), and nothing above "
            + "\(deviceRate / 2) Hz; set audio.rate to \(deviceRate) or less"
    }
}
