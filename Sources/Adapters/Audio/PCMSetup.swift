// Chooses and sets a device's parameters.
import CALSA
import Glibc
import Host

/// The parameters of a device.
struct PCMParameters: Equatable {
    /// Frames per second of the device.
    var rate: Int
    var format: SampleFormat
    /// The smallest channel count that includes the requested channel.
    ///
    /// Only that channel is read.
    var channels: Int
    /// Frames of a period and of the device's buffer.
    var period: Int
    var buffer: Int
    /// Frames after which the device wakes us.
    var wake: Int
    /// Positions have a timestamp on CLOCK_MONOTONIC.
    var isStamped: Bool

    /// The longest safe delay before the next read: 500 ms, or a quarter of the buffer if that is
    /// less.
    var patience: Duration { min(.milliseconds(500), .seconds(Double(buffer) / Double(4 * rate))) }

    private var frameBytes: Int { format.width * channels }

    /// Frames per read, and their size: a tenth of a second, at most a megabyte.
    ///
    /// A device that requires hundreds of channels must not cost memory.
    var block: (frames: Int, bytes: Int) {
        let frames = max(1, min(rate / 10, (1 << 20) / frameBytes))
        return (frames, frames * frameBytes)
    }

    /// Converts frames at another rate to frames of the device, rounded up.
    func frames(of frames: Int, at other: Int) -> Int {
        (frames * rate + other - 1) / other
    }
}

/// Sets up an open PCM.
struct PCMSetup {
    let handle: OpaquePointer
    let device: String
    /// Frames per second after resampling.
    let rate: Int
    let wake: Duration
    /// The requested channel, counted from 1; nil for any.
    let channel: Int?

    /// Rates to try if the device lacks ours, the best ratio of quality to CPU time first.
    private static let rates = [
        48_000, 32_000, 96_000, 44_100, 88_200, 192_000, 384_000, 24_000, 22_050,
    ]

    /// Chooses and sets the parameters.
    func configure() throws -> PCMParameters {
        var parameters: OpaquePointer?
        snd_pcm_hw_params_malloc(&parameters)
        defer { snd_pcm_hw_params_free(parameters) }
        try check(snd_pcm_hw_params_any(handle, parameters), "hw_params_any")
        // Hardware rates only: libasound would interpolate linearly, without a filter.
        try check(snd_pcm_hw_params_set_rate_resample(handle, parameters, 0), "rate_resample")
        try check(
            snd_pcm_hw_params_set_access(handle, parameters, SND_PCM_ACCESS_RW_INTERLEAVED),
            "access"
        )
        let native = try chooseRate(parameters)
        let format = try chooseFormat(parameters)
        let channels = try chooseChannels(parameters)
        let (period, buffer) = try chooseBuffer(parameters, native)
        var shape = PCMParameters(
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
        // Plugins that start by themselves return EBADFD.
        guard code >= 0 || code == -EBADFD else { throw Self.failure(device, "start", code) }
    }

    /// Chooses our rate, else the best higher one, else the nearest.
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

    /// Chooses the smallest number of channels that includes the requested one.
    private func chooseChannels(_ parameters: OpaquePointer?) throws -> Int {
        let wanted = channel ?? 1
        var maximum: UInt32 = 0
        if wanted > 1, snd_pcm_hw_params_get_channels_max(parameters, &maximum) >= 0,
            maximum < wanted
        {
            throw Failure(
                "\(device): has \(maximum == 1 ? "one channel" : "\(maximum) channels") and no channel \(wanted); "
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

    private func chooseFormat(_ parameters: OpaquePointer?) throws -> SampleFormat {
        for format in SampleFormat.allCases
        where snd_pcm_hw_params_set_format(handle, parameters, format.alsa) >= 0 {
            return format
        }
        throw Failure(
            "\(device): none of its sample formats can be read; use `plug:\(device)` or `default`"
        )
    }

    /// Chooses a buffer of four seconds, to survive a memory card that stalls during writes.
    private func chooseBuffer(
        _ parameters: OpaquePointer?,
        _ native: Int
    ) throws -> (period: Int, buffer: Int) {
        var buffer = snd_pcm_uframes_t(native * 4)
        try check(
            snd_pcm_hw_params_set_buffer_size_near(handle, parameters, &buffer),
            "buffer size"
        )
        // Hardware wakes us at `avail_min` and updates its timestamp each period, so its period is
        // short. A plugin wakes us each period, so its period is long.
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

    /// Sets the wake-up threshold; true if positions will have a usable timestamp.
    private func setWaking(_ shape: PCMParameters) throws -> Bool {
        var parameters: OpaquePointer?
        snd_pcm_sw_params_malloc(&parameters)
        defer { snd_pcm_sw_params_free(parameters) }
        try check(snd_pcm_sw_params_current(handle, parameters), "sw_params_current")
        try check(
            snd_pcm_sw_params_set_avail_min(handle, parameters, snd_pcm_uframes_t(shape.wake)),
            "avail_min"
        )
        // Not every plugin supports timestamps.
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

    /// Returns the message for a failed call, with its remedy; `owner` is the program that holds
    /// the device.
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
