// Spectrograms of audio chunks, made on demand.
import Glibc
import Host
import Synchronization

/// Makes spectrograms with ffmpeg, one at a time, and caches the pictures.
final class Spectrograms: Sendable {
    static let size = (width: 640, height: 128)
    /// Milliseconds of a file that are drawn.
    static let longest: Int64 = 120_000

    private static let program = "/usr/bin/ffmpeg"
    /// Part of util-linux, which every Debian has.
    private static let limiter = "/usr/bin/prlimit"
    /// Bytes of cached pictures; above it all are deleted, and made again on demand.
    private static let mostBytes = 256 << 20
    private static let timeLimit = Duration.seconds(10)

    private let folder: String
    private let stop: StopSignal
    /// The cached bytes, nil until counted; locked while a picture is made.
    private let kept = Mutex<Int?>(nil)

    /// `directory`: the archive's.
    init(directory: String) throws {
        folder = "\(directory)/.receiver-spectrograms"
        stop = try StopSignal()
    }

    /// True if ffmpeg is installed; otherwise the page offers no spectrograms.
    static var canBeMade: Bool { access(program, X_OK) == 0 && access(limiter, X_OK) == 0 }

    /// Returns a PNG of 0 to 8 kHz from bottom to top, loud parts bright.
    ///
    /// `path`: an existing audio file. Throws an HTTPRefusal if no picture can be made of it.
    func picture(of path: String) throws -> [UInt8] {
        // Hashed, because device and stream names together may exceed the limit of a file name.
        let name = sha256(path).map { String($0, radix: 16) }.joined(separator: "-")
        let picture = "\(folder)/\(name).png"
        if let known = try Self.read(picture) { return known }
        return try kept.withLock { kept in
            if let known = try Self.read(picture) { return known }
            mkdir(folder, 0o755)
            var bytes = try kept ?? counted()
            if bytes > Self.mostBytes {
                for name in names(inFolder: folder) { unlink("\(folder)/\(name)") }
                bytes = 0
            }
            kept = bytes
            try make(picture, of: path)
            guard let made = try Self.read(picture) else { throw Self.none }
            kept = bytes + made.count
            return made
        }
    }

    private static var none: HTTPRefusal {
        HTTPRefusal(status: 404, reason: "no spectrogram can be made of this audio file")
    }

    private static func read(_ picture: String) throws -> [UInt8]? {
        guard let file = try LineFile.open(picture) else { return nil }
        return try file.read(Int(try file.size()), at: 0)
    }

    private func counted() throws -> Int {
        try names(inFolder: folder).reduce(0) {
            $0 + Int(try LineFile.open("\(folder)/\($1)")?.size() ?? 0)
        }
    }

    /// Makes a picture of a file from a gateway, which may be hostile: ffmpeg reads it only as the
    /// format of its name, opens no other file, and has limited memory and time.
    private func make(_ picture: String, of path: String) throws {
        let format = path.split(separator: ".").last.map(String.init) ?? ""
        let part = picture + ".part"
        let (width, height) = Self.size
        let filter =
            "aresample=16000,aformat=channel_layouts=mono,showspectrumpic=s=\(width)x\(height):legend=0:scale=log:drange=90"
        let limits = ["--as=2147483648", "--cpu=10", "--fsize=4194304", "--core=0"]
        let input = [
            "-protocol_whitelist", "file", "-f", format, "-t", "\(Self.longest / 1000)", "-i",
            "file:" + path,
        ]
        let output = [
            "-lavfi", filter, "-frames:v", "1", "-y", "-f", "image2", "-update", "1", "-c:v", "png",
            part,
        ]
        let program = Program(
            path: Self.limiter,
            arguments: limits + [Self.program, "-nostdin", "-v", "error", "-threads", "1"] + input
                + output
        )
        defer { unlink(part) }
        do {
            try program.run(limit: Self.timeLimit, until: stop)
        } catch is Trouble {
            throw Self.none
        }
        rename(part, picture)
    }
}
