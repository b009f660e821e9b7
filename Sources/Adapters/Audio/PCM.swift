// One capture stream of libasound.
internal import Board
internal import CALSA
internal import Glibc

/// A call of libasound that failed, in its own words.
struct ALSAError: Error, Equatable, CustomStringConvertible {
    var call: String
    /// A negative errno, as libasound returns it.
    var code: Int32

    var description: String { "\(call): \(String(cString: snd_strerror(code)))" }
}

/// Owns an open PCM: 16-bit frames, interleaved, non-blocking.
struct PCM: ~Copyable {
    private let handle: OpaquePointer
    let device: String
    /// 1, or what the device insists on; only the first channel is used.
    let channels: Int
    let rate: Int

    /// Opens and starts a device.
    ///
    /// Throws a Failure that names it and says what to do.
    init(device: String, rate: Int) throws {
        waypost_alsa_silence()
        var handle: OpaquePointer?
        let code = snd_pcm_open(&handle, device, SND_PCM_STREAM_CAPTURE, Int32(SND_PCM_NONBLOCK))
        guard code >= 0, let handle else { throw Self.failure(device, "open", code) }
        let configured = Result { try Self.start(handle, device: device, rate: rate) }
        if case .failure = configured { snd_pcm_close(handle) }
        let channels = try configured.get()
        self.handle = handle
        self.device = device
        self.channels = channels
        self.rate = rate
    }

    deinit {
        snd_pcm_close(handle)
    }

    /// Waits for frames at most `milliseconds`; false when none came.
    func wait(milliseconds: Int32) throws(ALSAError) -> Bool {
        let code = snd_pcm_wait(handle, milliseconds)
        // A signal is no fault of the device.
        guard code >= 0 || code == -EINTR else { throw ALSAError(call: "snd_pcm_wait", code: code) }
        return code == 1
    }

    /// Reads what is there, at most the buffer's size, as mono; returns the number of frames.
    func read(into mono: inout [Int16], limit: Int) throws(ALSAError) -> Int {
        var frames = [Int16](repeating: 0, count: limit * channels)
        let count = snd_pcm_readi(handle, &frames, snd_pcm_uframes_t(limit))
        if count == -Int(EAGAIN) { return 0 }
        guard count >= 0 else { throw ALSAError(call: "snd_pcm_readi", code: Int32(count)) }
        for frame in 0..<count { mono.append(frames[frame * channels]) }
        return count
    }

    /// Frames that are captured and not read yet.
    var available: Int { max(0, Int(snd_pcm_avail(handle))) }

    /// Configures and starts it; returns its channels.
    private static func start(_ handle: OpaquePointer, device: String, rate: Int) throws -> Int {
        let channels = try configure(handle, device: device, rate: rate)
        let code = snd_pcm_start(handle)
        // Plugins that start by themselves say EBADFD.
        guard code >= 0 || code == -EBADFD else { throw failure(device, "start", code) }
        return channels
    }

    private static func configure(
        _ handle: OpaquePointer,
        device: String,
        rate: Int
    ) throws -> Int {
        var parameters: OpaquePointer?
        snd_pcm_hw_params_malloc(&parameters)
        defer { snd_pcm_hw_params_free(parameters) }
        func check(_ code: Int32, _ call: String) throws {
            if code < 0 { throw failure(device, call, code) }
        }
        try check(snd_pcm_hw_params_any(handle, parameters), "hw_params_any")
        try check(
            snd_pcm_hw_params_set_access(handle, parameters, SND_PCM_ACCESS_RW_INTERLEAVED),
            "access"
        )
        try check(
            snd_pcm_hw_params_set_format(handle, parameters, SND_PCM_FORMAT_S16_LE),
            "16-bit samples"
        )
        var channels: UInt32 = 1
        try check(
            snd_pcm_hw_params_set_channels_near(handle, parameters, &channels),
            "channels"
        )
        guard snd_pcm_hw_params_set_rate(handle, parameters, UInt32(rate), 0) >= 0 else {
            throw wrongRate(handle, parameters, device: device, rate: rate)
        }
        // Two seconds of buffer absorb the stalls of a slow card; tenths of a second keep the delay small.
        var buffer = snd_pcm_uframes_t(rate * 2)
        var period = snd_pcm_uframes_t(rate / 10)
        try check(
            snd_pcm_hw_params_set_buffer_size_near(handle, parameters, &buffer),
            "buffer size"
        )
        try check(
            snd_pcm_hw_params_set_period_size_near(handle, parameters, &period, nil),
            "period size"
        )
        try check(snd_pcm_hw_params(handle, parameters), "hw_params")
        return Int(channels)
    }

    private static func wrongRate(
        _ handle: OpaquePointer,
        _ parameters: OpaquePointer?,
        device: String,
        rate: Int
    ) -> Failure {
        var lowest: UInt32 = 0
        var highest: UInt32 = 0
        snd_pcm_hw_params_get_rate_min(parameters, &lowest, nil)
        snd_pcm_hw_params_get_rate_max(parameters, &highest, nil)
        let rates = lowest == highest ? "\(lowest)" : "\(lowest) to \(highest)"
        return Failure(
            "\(device): cannot capture at \(rate) Hz (it offers \(rates)); use a converting device such as `plug\(device)` or `default`"
        )
    }

    private static func failure(_ device: String, _ call: String, _ code: Int32) -> Failure {
        let reason = String(cString: snd_strerror(code))
        switch -code {
        case EACCES, EPERM:
            return Failure(
                "\(device): \(reason); add the user to the group audio",
                code: .permission
            )
        case ENOENT, ENODEV, ENXIO:
            return Failure("\(device): no such capture device; `arecord -L` lists what is there")
        case EBUSY:
            return Failure(
                "\(device): in use by another program; `fuser -v /dev/snd/*` tells which"
            )
        default:
            return Failure("\(device): \(call): \(reason)")
        }
    }
}
