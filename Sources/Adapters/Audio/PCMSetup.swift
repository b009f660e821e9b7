// What a device can do, and which of it we take.
import CALSA
import Glibc
import Host

/// How a device was set up.
struct PCMShape: Equatable {
    /// Frames a second of the device.
    var rate: Int
    var format: FrameFormat
    /// One, or what the device insists on; one of them is used.
    var channels: Int
    /// Frames of a period and of the device's buffer.
    var period: Int
    var buffer: Int
    /// Frames after which the device wakes us.
    var wake: Int
    /// Whether positions come with a time on CLOCK_MONOTONIC.
    var isStamped: Bool

    /// How long reading may be put off: half a second, or a quarter of a small buffer.
    var patience: Duration { min(.milliseconds(500), .seconds(Double(buffer) / Double(4 * rate))) }

    private var frameBytes: Int { format.width * channels }

    /// Frames to read at a time, a tenth of a second or a megabyte, and the bytes they take: a device that insists on
    /// hundreds of channels must not cost memory.
    var block: (frames: Int, bytes: Int) {
        let frames = max(1, min(rate / 10, (1 << 20) / frameBytes))
        return (frames, frames * frameBytes)
    }

    /// Frames of the device that `frames` at another rate stand for, rounded up.
    func frames(of frames: Int, at other: Int) -> Int {
        (frames * rate + other - 1) / other
    }
}

/// Sets up an open PCM.
struct PCMSetup {
    let handle: OpaquePointer
    let device: String
    /// Frames a second that we want in the end.
    let rate: Int
    let wake: Duration
    /// The channel that is wanted, counted from 1; nil for any.
    let channel: Int?

    /// Rates to try when the device does not have ours: those that give the best sound for the least work.
    private static let rates = [48_000, 32_000, 96_000, 44_100, 88_200, 192_000, 24_000, 22_050]

    /// Chooses and sets the parameters.
    func configure() throws -> PCMShape {
        var parameters: OpaquePointer?
        snd_pcm_hw_params_malloc(&parameters)
        defer { snd_pcm_hw_params_free(parameters) }
        try check(snd_pcm_hw_params_any(handle, parameters), "hw_params_any")
        // Only what the hardware does: libasound would interpolate linearly, without a filter.
        try check(snd_pcm_hw_params_set_rate_resample(handle, parameters, 0), "rate_resample")
        try check(
            snd_pcm_hw_params_set_access(handle, parameters, SND_PCM_ACCESS_RW_INTERLEAVED),
            "access"
        )
        let native = try chooseRate(parameters)
        let format = try chooseFormat(parameters)
        let channels = try chooseChannels(parameters)
        let (period, buffer) = try chooseBuffer(parameters, native)
        var shape = PCMShape(
            rate: native,
            format: format,
            channels: channels,
            period: period,
            buffer: buffer,
            wake: max(1, min(buffer / 2, native * Int(wake.milliseconds) / 1000)),
            isStamped: false
        )
        shape.isStamped = try setWaking(shape)
        return shape
    }

    /// Starts the stream.
    func start() throws {
        let code = snd_pcm_start(handle)
        // Plugins that start by themselves say EBADFD.
        guard code >= 0 || code == -EBADFD else { throw Self.failure(device, "start", code) }
    }

    /// Ours, or the best that is no less, or the nearest.
    private func chooseRate(_ parameters: OpaquePointer?) throws -> Int {
        let better = Self.rates.filter { $0 > rate }
        for candidate in [rate] + better
        where snd_pcm_hw_params_set_rate(handle, parameters, UInt32(candidate), 0) >= 0 {
            return candidate
        }
        var nearest = UInt32(rate)
        try check(snd_pcm_hw_params_set_rate_near(handle, parameters, &nearest, nil), "rate")
        return Int(nearest)
    }

    /// As few as hold the channel that is wanted.
    private func chooseChannels(_ parameters: OpaquePointer?) throws -> Int {
        let wanted = channel ?? 1
        var most: UInt32 = 0
        if wanted > 1, snd_pcm_hw_params_get_channels_max(parameters, &most) >= 0, most < wanted {
            throw Failure(
                "\(device): has \(most == 1 ? "one channel" : "\(most) channels") and no channel \(wanted); "
                    + "set audio.channel to \"auto\""
            )
        }
        var channels = UInt32(wanted)
        if wanted > 1 {
            try check(
                snd_pcm_hw_params_set_channels_min(handle, parameters, &channels),
                "channels"
            )
        }
        try check(snd_pcm_hw_params_set_channels_near(handle, parameters, &channels), "channels")
        return Int(channels)
    }

    private func chooseFormat(_ parameters: OpaquePointer?) throws -> FrameFormat {
        for format in FrameFormat.allCases
        where snd_pcm_hw_params_set_format(handle, parameters, format.alsa) >= 0 {
            return format
        }
        throw Failure(
            "\(device): none of its sample formats can be read; use `plug:\(device)` or `default`"
        )
    }

    /// Four seconds of buffer ride out a card that stalls while it writes.
    private func chooseBuffer(
        _ parameters: OpaquePointer?,
        _ native: Int
    ) throws -> (period: Int, buffer: Int) {
        var buffer = snd_pcm_uframes_t(native * 4)
        try check(
            snd_pcm_hw_params_set_buffer_size_near(handle, parameters, &buffer),
            "buffer size"
        )
        // Hardware wakes us by `avail_min` whatever its period, which dates its frames; a plugin at each period.
        let isHardware = snd_pcm_type(handle) == SND_PCM_TYPE_HW
        let wanted = isHardware ? native / 20 : native * Int(wake.milliseconds) / 2000
        var period = snd_pcm_uframes_t(max(1, wanted))
        try check(
            snd_pcm_hw_params_set_period_size_near(handle, parameters, &period, nil),
            "period size"
        )
        try check(snd_pcm_hw_params(handle, parameters), "hw_params")
        snd_pcm_hw_params_get_buffer_size(parameters, &buffer)
        snd_pcm_hw_params_get_period_size(parameters, &period, nil)
        return (Int(period), Int(buffer))
    }

    /// Sets when it wakes us; true when its positions will carry a time that we can use.
    private func setWaking(_ shape: PCMShape) throws -> Bool {
        var parameters: OpaquePointer?
        snd_pcm_sw_params_malloc(&parameters)
        defer { snd_pcm_sw_params_free(parameters) }
        try check(snd_pcm_sw_params_current(handle, parameters), "sw_params_current")
        try check(
            snd_pcm_sw_params_set_avail_min(handle, parameters, snd_pcm_uframes_t(shape.wake)),
            "avail_min"
        )
        // Not every plugin knows them.
        let isStamped =
            snd_pcm_sw_params_set_tstamp_mode(handle, parameters, SND_PCM_TSTAMP_ENABLE) >= 0
            && snd_pcm_sw_params_set_tstamp_type(
                handle,
                parameters,
                SND_PCM_TSTAMP_TYPE_MONOTONIC
            ) >= 0
        try check(snd_pcm_sw_params(handle, parameters), "sw_params")
        return isStamped
    }

    private func check(_ code: Int32, _ call: String) throws {
        if code < 0 { throw Self.failure(device, call, code) }
    }

    /// What a failed call means for the person before the device; `owner`: who holds it, where known.
    static func failure(
        _ device: String,
        _ call: String,
        _ code: Int32,
        owner: String? = nil
    ) -> Failure {
        let reason = String(cString: snd_strerror(code))
        switch -code {
        case EACCES, EPERM:
            return Failure(
                "\(device): \(reason); add the user to the group audio",
                code: .permission
            )
        case ENOENT, ENODEV, ENXIO:
            return Failure(
                "\(device): no such capture device; plug it in, or choose one that `waypost devices` lists"
            )
        case EBUSY:
            let who = owner ?? "another program"
            return Failure("\(device): in use by \(who); stop that, or choose another device")
        default:
            return Failure("\(device): \(call): \(reason)")
        }
    }
}
