// A capture stream of libasound.
import CALSA
import Glibc
import Host

/// An error of a libasound call, with its message.
struct ALSAError: Error, Equatable, CustomStringConvertible {
    var call: String
    /// A negative errno, as libasound returns it.
    var code: Int32

    var description: String { "\(call): \(String(cString: snd_strerror(code)))" }
}

/// The number of frames captured at a point in time.
struct Position {
    /// Frames at the device's rate since it was started.
    var captured: Int64
    /// The age of the position at `now`.
    var age: Duration
    var now: Stamp
    /// See `HostClock.slewed`.
    var slewed = Duration.zero

    /// `now` by a clock that is not slewed: only that one compares frames with time.
    var steady: BootInstant { now.boot + slewed }
}

/// Owns an open PCM; reads one channel as 16-bit samples at the requested rate.
///
/// If the device does not support that rate, `Resampler` converts, because libasound has no filter.
/// Never blocks except in `wait`.
struct PCM: ~Copyable {
    private let handle: OpaquePointer
    /// The requested name; or, if `default` cannot capture, the name of the only card that can.
    let device: String
    /// Frames per second that `read` returns.
    let rate: Int
    /// The device's own parameters.
    let shape: PCMParameters
    private let resampler: Resampler?
    /// Notified of each call that may block.
    private let life: Heartbeat
    private var raw: [UInt8]
    private var values: [Float]
    /// Frames read at the device's rate since it was started.
    private(set) var framesRead: Int64
    private var heard: HeardAudio
    /// The channel that is read, counted from 1; nil until one with a signal is found.
    private(set) var channel: Int?
    private let wantedChannel: Int?

    /// Opens and starts a device: any ALSA PCM, or a stable name that `AudioCards` knows.
    ///
    /// `wake`: `wait` returns once this much audio is readable; `channel`: the channel to read,
    /// counted from 1, nil for the first with a signal. Throws a `Failure` with the device and a
    /// remedy.
    init(
        device: String,
        rate: Int,
        channel: Int? = nil,
        wake: Duration = .seconds(1),
        cards: AudioCards = AudioCards(),
        life: Heartbeat = Heartbeat()
    ) throws {
        let opened = try Self.open(device, rate, channel, wake, cards, life)
        self.life = life
        handle = opened.handle
        shape = opened.shape
        resampler = opened.resampler
        self.device = opened.device
        self.rate = rate
        wantedChannel = channel
        self.channel = opened.shape.channels == 1 ? 1 : channel
        values = []
        framesRead = 0
        // Set here, not at the declaration: Swift 6.0 crashes if `init` throws after it was
        // initialized.
        heard = HeardAudio()
        raw = [UInt8](repeating: 0, count: opened.shape.block.bytes)
    }

    private static func open(
        _ device: String,
        _ rate: Int,
        _ channel: Int?,
        _ wake: Duration,
        _ cards: AudioCards,
        _ life: Heartbeat
    ) throws -> (
        handle: OpaquePointer, device: String, shape: PCMParameters, resampler: Resampler?
    ) {
        waypost_alsa_silence()
        let name = try cards.pcmName(of: device)
        var handle: OpaquePointer?
        let code = life.during("snd_pcm_open") {
            snd_pcm_open(&handle, name, SND_PCM_STREAM_CAPTURE, Int32(SND_PCM_NONBLOCK))
        }
        guard code >= 0, let handle else {
            // On a stock Raspberry Pi `default` is the HDMI output, which does not capture.
            if device == "default", code != -EBUSY, let only = cards.onlyCapture() {
                return try open(only, rate, channel, wake, cards, life)
            }
            throw PCMSetup.failure(device, "open", code, owner: cards.owner(of: name))
        }
        do {
            let setup = PCMSetup(
                handle: handle,
                device: device,
                rate: rate,
                wake: wake,
                channel: channel
            )
            let shape = try life.during("snd_pcm_hw_params") { try setup.configure() }
            try life.during("snd_pcm_start") { try setup.start() }
            let isOurs = shape.rate == rate
            return (handle, device, shape, isOurs ? nil : try Resampler(from: shape.rate, to: rate))
        } catch {
            snd_pcm_close(handle)
            throw error
        }
    }

    deinit {
        life.enters("snd_pcm_close")
        snd_pcm_close(handle)
        life.returns()
    }

    /// Waits at most `milliseconds` for frames; false if none arrived.
    func wait(milliseconds: Int32) -> Bool {
        wait(for: 1, limit: .milliseconds(Int64(milliseconds)))
    }

    /// Waits at most `limit` until `frames` (at `rate`) can be read, or until `stop` is readable.
    ///
    /// True if a read will return frames or an error: a fault ends the wait, too.
    func wait(for frames: Int, alongside stop: Int32 = -1, limit: Duration) -> Bool {
        let needed = min(shape.wake, shape.frames(of: frames, at: rate))
        let waiting = available()
        if waiting < 0 || waiting >= needed { return true }
        // The device wakes us only after `shape.wake` frames; for fewer, use a timeout.
        let isShort = needed < shape.wake
        let missing = Duration.seconds(Double(needed - waiting) / Double(shape.rate))
        let isReady = poll(alongside: stop, limit: isShort ? min(limit, missing) : limit)
        return isReady || available() >= needed
    }

    /// Returns the number of readable frames, or a negative errno.
    private func available() -> Int { life.during("snd_pcm_avail") { Int(snd_pcm_avail(handle)) } }

    private func poll(alongside stop: Int32, limit: Duration) -> Bool {
        let count = max(0, Int(snd_pcm_poll_descriptors_count(handle)))
        var entries = [pollfd](repeating: pollfd(), count: count + 1)
        entries[0] = pollfd(fd: stop, events: Int16(POLLIN), revents: 0)
        var result: UInt16 = 0
        return entries.withUnsafeMutableBufferPointer { entries in
            guard let own = entries.baseAddress?.advanced(by: 1) else { return true }
            snd_pcm_poll_descriptors(handle, own, UInt32(count))
            let milliseconds = Int32(clamping: (limit.nanoseconds + 999_999) / 1_000_000)
            let ready = life.during("poll", for: limit) {
                Glibc.poll(entries.baseAddress, nfds_t(count + 1), milliseconds)
            }
            guard ready > 0 else { return false }
            life.during("snd_pcm_poll_descriptors_revents") {
                _ = snd_pcm_poll_descriptors_revents(handle, own, UInt32(count), &result)
            }
            return result != 0
        }
    }

    /// Reads at most `limit` frames (at `rate`) and appends them; returns the number appended.
    mutating func read(into mono: inout [Int16], limit: Int) throws(ALSAError) -> Int {
        let before = mono.count
        var left = shape.frames(of: limit, at: rate)
        while left > 0 {
            let step = min(left, shape.block.frames)
            life.enters("snd_pcm_readi")
            let count = snd_pcm_readi(handle, &raw, snd_pcm_uframes_t(step))
            life.returns()
            if count == -Int(EAGAIN) || count == 0 { break }
            guard count > 0 else {
                // Keep frames read before the fault; the next read returns the fault again.
                if mono.count > before { break }
                throw ALSAError(call: "snd_pcm_readi", code: Int32(count))
            }
            framesRead += Int64(count)
            left -= count
            append(count, to: &mono)
        }
        return mono.count - before
    }

    private mutating func append(_ frames: Int, to mono: inout [Int16]) {
        values.removeAll(keepingCapacity: true)
        raw.withUnsafeBytes {
            if channel == nil {
                channel = shape.format.firstWithAudio($0, frames: frames, channels: shape.channels)
                    .map { $0 + 1 }
            }
            shape.format.append(
                $0,
                frames: frames,
                channel: (channel ?? 1) - 1,
                of: shape.channels,
                to: &values
            )
        }
        heard.blocks.append(SampleSums(values: values))
        heard.clipped += values.count { abs($0) >= 32_767.0 / 32_768 }
        if let resampler { return resampler.convert(values, into: &mono) }
        // Exact for 16-bit samples: a float holds 24 bits.
        for value in values { mono.append(Int16(fullScale: value)) }
    }

    /// Returns and clears the sums of all frames read since the last call, at the device's rate.
    mutating func removeHeard() -> HeardAudio {
        defer { heard = HeardAudio() }
        return heard
    }

    /// Appends the frames that the filter still holds.
    func finish(into mono: inout [Int16]) {
        resampler?.finish(into: &mono)
    }

    /// Returns the frames captured since the start (read or not, at the device's rate), and when.
    ///
    /// nil while the device is not running.
    func position(_ clock: any HostClock) -> Position? {
        var best: (position: Position, took: Int64)?
        // Reads both clocks again if more than 1 ms passed between them, because the audio would
        // get a wrong time.
        for _ in 0..<4 where best.map({ $0.took > 1_000_000 }) ?? true {
            let before = SystemClock.read(CLOCK_MONOTONIC)
            guard let (captured, age) = captured(at: before) else { return nil }
            let now = clock.stamp()
            let took = SystemClock.read(CLOCK_MONOTONIC) - before
            if took < best?.took ?? .max {
                let slewed = clock.slewed()
                best = (Position(captured: captured, age: age, now: now, slewed: slewed), took)
            }
        }
        return best?.position
    }

    private func captured(at now: Int64) -> (frames: Int64, age: Duration)? {
        guard snd_pcm_state(handle) == SND_PCM_STATE_RUNNING else { return nil }
        life.enters("snd_pcm_htimestamp")
        defer { life.returns() }
        var waiting = snd_pcm_uframes_t(0)
        var stamp = snd_htimestamp_t()
        if shape.isStamped, snd_pcm_htimestamp(handle, &waiting, &stamp) == 0 {
            let at = Int64(stamp.tv_sec) * 1_000_000_000 + Int64(stamp.tv_nsec)
            let age = Duration.nanoseconds(now - at)
            // Some plugins leave the timestamp at zero.
            if age > .milliseconds(-1), age < .seconds(5) {
                return (framesRead + Int64(waiting), age)
            }
        }
        let count = available()
        return count < 0 ? nil : (framesRead + Int64(count), .zero)
    }

    /// Restarts the device after a fault; its frames count from zero again.
    ///
    /// After a suspend, waits for the hardware: at most three seconds, or until `stop` is raised.
    mutating func restart(until stop: StopSignal) throws {
        life.enters("snd_pcm_prepare")
        defer { life.returns() }
        for _ in 0..<30 where snd_pcm_state(handle) == SND_PCM_STATE_SUSPENDED {
            guard snd_pcm_resume(handle) == -EAGAIN, !stop.sleep(for: .milliseconds(100)) else {
                break
            }
        }
        snd_pcm_drop(handle)
        let code = snd_pcm_prepare(handle)
        guard code >= 0 else { throw ALSAError(call: "snd_pcm_prepare", code: code) }
        resampler?.reset()
        framesRead = 0
        // Search for a channel again: the old one may have gone silent.
        if shape.channels > 1 { channel = wantedChannel }
        let started = snd_pcm_start(handle)
        guard started >= 0 || started == -EBADFD else {
            throw ALSAError(call: "snd_pcm_start", code: started)
        }
    }
}

extension PCM {
    /// Calls `open` with the index of each device, from `start` on and wrapping around, until one
    /// opens; throws the failures of all as one.
    static func first(
        of devices: [String],
        from start: Int = 0,
        _ open: (Int) throws -> PCM
    ) throws -> PCM {
        var problems: [Failure] = []
        for index in devices.indices.map({ (start + $0) % devices.count }) {
            do {
                return try open(index)
            } catch {
                problems.append((error as? Failure) ?? Failure("\(devices[index]): \(error)"))
            }
        }
        throw Failure(
            problems.map(\.message).joined(separator: "; "),
            code: problems.compactMap(\.code).first
        )
    }
}
