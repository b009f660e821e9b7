// Pictures of the sound of a chunk, made when somebody looks.
import Glibc
import Host
import Synchronization

/// Made by ffmpeg, one at a time; each is kept until there are too many.
final class Spectrograms: Sendable {
    static let size = (width: 640, height: 128)

    private static let program = "/usr/bin/ffmpeg"
    /// Of util-linux, which each Debian has.
    private static let limiter = "/usr/bin/prlimit"
    /// Bytes of pictures that are kept; with more all go, and are made again when somebody looks.
    private static let mostBytes = 256 << 20
    private static let timeLimit = Duration.seconds(10)

    private let folder: String
    private let stop: StopSignal
    /// Bytes that are kept, nil where they are not counted yet; held while a picture is made.
    private let kept = Mutex<Int?>(nil)

    /// `directory`: the archive's.
    init(directory: String) throws {
        folder = "\(directory)/.receiver-spectrograms"
        stop = try StopSignal()
    }

    /// Without ffmpeg the page offers none.
    static var canBeMade: Bool { access(program, X_OK) == 0 && access(limiter, X_OK) == 0 }

    /// A PNG of 0 to 8 kHz upwards, loud parts bright.
    ///
    /// `path`: of a file of sound that is there. Throws an HTTPRefusal where none can be made of it.
    func picture(of path: String) throws -> [UInt8] {
        // Names of devices and streams together may be longer than that of a file.
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
        HTTPRefusal(status: 404, reason: "no picture can be made of this sound")
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

    /// What stands in the file is a gateway's: ffmpeg takes it for the format of its name and nothing else, opens no
    /// other file, and has little of the machine.
    private func make(_ picture: String, of path: String) throws {
        let format = path.split(separator: ".").last.map(String.init) ?? ""
        let part = picture + ".part"
        let (width, height) = Self.size
        let filter =
            "aresample=16000,aformat=channel_layouts=mono,showspectrumpic=s=\(width)x\(height):legend=0:scale=log:drange=90"
        let limits = ["--as=2147483648", "--cpu=10", "--fsize=4194304", "--core=0"]
        let input = [
            "-protocol_whitelist", "file", "-f", format, "-t", "120", "-i", "file:" + path,
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
