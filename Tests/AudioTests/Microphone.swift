// A microphone behind the real libasound that misbehaves on demand (Tests/FieldFaults/soundfaults.c).
import Foundation
import Host
import Support
import Testing

import Audio

/// One microphone, plugged in until `Mode` says otherwise; deletes its control file at the end.
final class Microphone: Sendable {
    /// Its behaviour, by the number in `struct control`.
    enum Mode: Int64 {
        case fine
        case zeros
        case stalled
        case failing
        case unplugged
        case busy
        case denied
        case constant
        /// Each start ends in an overrun, as with a USB device whose transfers fail.
        case torn
        /// Noise of half a 16-bit step: as quiet as a good microphone at night.
        case quiet
        /// Gives as much as is read, from its first frame on; for a clock that the reader moves.
        case pulled
    }

    static let library = NSTemporaryDirectory() + "waypost-soundfaults-\(getpid()).so"

    /// Compiled once, before libasound reads its configuration.
    static let isBuilt: Bool = {
        var root = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { root.deleteLastPathComponent() }
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = [
            "cc", "-shared", "-fPIC", "-O1", "-o", library,
            root.appendingPathComponent("Tests/FieldFaults/soundfaults.c").path, "-lasound", "-lm",
        ]
        guard (try? compiler.run()) != nil else { return false }
        compiler.waitUntilExit()
        return compiler.terminationStatus == 0
    }()

    private let control: String
    /// When its ramp was 0, on CLOCK_MONOTONIC in nanoseconds.
    let epoch: Int64

    /// Its ramp is 0 at this time.
    init() throws {
        control = NSTemporaryDirectory() + "waypost-mic-\(UUID().uuidString)"
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        epoch = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        try Data(count: 64).write(to: URL(fileURLWithPath: control))
        set(4, epoch)
    }

    deinit {
        unlink(control)
    }

    /// The PCM's name; `rates` and `formats` separated by blanks.
    func device(
        rates: String = "16000",
        formats: String = "S16_LE",
        channels: Int = 1,
        tone: Int = 0,
        file: String = ""
    ) -> String {
        "waypost_mic:'\(control)','\(rates)','\(formats)',\(channels),\(tone),'\(file)'"
    }

    /// The same behind libasound's converter.
    func plugged(rates: String, tone: Int) -> String {
        "waypost_plug:'\(control)','\(rates)',\(tone)"
    }

    /// From now on; acts at once.
    func become(_ mode: Mode) { set(0, mode.rawValue) }

    /// The overruns (1) or suspends (2) so far; each increase is one.
    func overrun(_ count: Int64) { set(1, count) }

    func suspend(_ count: Int64) { set(2, count) }

    /// Millionths by which its clock is fast.
    func drift(_ ppm: Int64) { set(3, ppm) }

    /// Bit n: channel n (from 0) gives digital silence, as the side of an I2S microphone that is not strapped.
    func mute(_ channels: Int64) { set(6, channels) }

    /// Milliseconds from a start to its first frame.
    func delay(_ milliseconds: Int64) { set(5, milliseconds * 1_000_000) }

    private func set(_ place: Int64, _ value: Int64) {
        let file = open(control, O_WRONLY | O_CLOEXEC)
        var bytes = value.littleEndian
        pwrite(file, &bytes, 8, off_t(place * 8))
        close(file)
    }
}
