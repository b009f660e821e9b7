// Listens to the microphone for `doctor` with the service's permissions.
import Audio
import CLinux
import Glibc
import Host
import JSON
import Setup

/// Listens to a microphone; if run by root, in a process of the service's user.
///
/// libasound reads configuration and loads plugins, which must not run as root.
struct AudioListener {
    let input: DoctorInput

    func listen(onLevel: (Double) -> Void) throws -> AudioProbe.Level {
        let audio = input.configuration.audio
        let owner = ServiceOwner(stateDirectory: input.configuration.stateDirectory)
        guard let ids = owner.ids, let program = input.program else {
            return try AudioProbe.listen(to: audio, onLevel: onLevel)
        }
        let pipe = try makePipe()
        let output = Descriptor(owning: pipe.reading)
        let started = Result { try start(program, audio, ids, output: pipe.writing) }
        close(pipe.writing)
        let process = try started.get()
        defer { _ = ExitStatus(waitingFor: process) }
        return try AudioReport.read(from: output.number, onLevel: onLevel)
    }

    /// Starts this program as another user; returns its pid.
    private func start(
        _ program: String,
        _ audio: AudioSettings,
        _ ids: FileOwner,
        output: Int32
    ) throws -> pid_t {
        let channel = audio.channel.map { ["--channel=\($0)"] } ?? []
        let arguments =
            ["waypost", "hear", "--rate=\(audio.rate)"] + channel
            + audio.devices.map { "--device=\($0)" }
        let environment = input.environment.filter { $0.key.hasPrefix("ALSA_") }
        var words = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (words + variables).forEach { free($0) } }
        var groups = Self.groups(of: ids)
        let process = waypost_start_as(
            program,
            ids.user,
            ids.group,
            &groups,
            groups.count,
            output,
            &words,
            &variables
        )
        guard process > 0 else { throw SystemError("fork", code: -process) }
        return process
    }

    /// Returns a user's groups; `audio` gives access to the devices.
    private static func groups(of ids: FileOwner) -> [gid_t] {
        guard let user = getpwuid(ids.user) else { return [ids.group] }
        var groups = [gid_t](repeating: ids.group, count: 64)
        var count = Int32(groups.count)
        guard getgrouplist(user.pointee.pw_name, ids.group, &groups, &count) >= 0 else {
            return [ids.group]
        }
        return Array(groups.prefix(Int(count)))
    }
}

/// The output of the listening process: a level per line, then the result or an error.
package enum AudioReport {
    private struct Line: Codable {
        var level: Double?
        var heard: AudioProbe.Level?
        var message: String?
        var code: String?
    }

    /// Listens and passes each line to `write`; the process does nothing else.
    package static func send(
        devices: [String],
        rate: Int,
        channel: Int?,
        write: ([UInt8]) -> Void
    ) {
        var audio = AudioSettings()
        (audio.devices, audio.rate, audio.channel) = (devices, rate, channel)
        do {
            let heard = try AudioProbe.listen(to: audio) { level in
                write(encodedJSON(Line(level: level)) + [10])
            }
            write(encodedJSON(Line(heard: heard)) + [10])
        } catch {
            let failure = (error as? Failure) ?? Failure("\(error)")
            let line = Line(message: failure.message, code: failure.code?.rawValue)
            write(encodedJSON(line) + [10])
        }
    }

    /// Clamps a figure from another user's process to a plausible range.
    private static func shown(_ level: Double) -> Double { min(max(level, -200), 200) }

    private static func shown(_ heard: AudioProbe.Level) -> AudioProbe.Level {
        var heard = heard
        heard.device = heard.device.plainWords(atMost: 100)
        (heard.average, heard.peak) = (shown(heard.average), shown(heard.peak))
        return heard
    }

    /// Reads the result of the listening process, without terminal control characters.
    static func read(
        from output: Int32,
        onLevel: (Double) -> Void
    ) throws -> AudioProbe.Level {
        var (lines, block) = (LineBuffer(), [UInt8](repeating: 0, count: 4096))
        while true {
            let count = Glibc.read(output, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0, lines.count < 1 << 20 else { break }
            lines.append(block.prefix(count))
            while case .whole(let bytes)? = lines.next(limit: .max) {
                let line = try JSONInput.decode(Line.self, from: bytes, snakeCase: true)
                if let level = line.level { onLevel(shown(level)) }
                if let heard = line.heard { return shown(heard) }
                if let message = line.message {
                    let words = message.plainWords(atMost: 1000)
                    throw Failure(words, code: line.code.flatMap(ErrorCode.init))
                }
            }
        }
        throw Failure(
            "the process that listens as the service's user gave no answer; can that user run this program?"
        )
    }
}
