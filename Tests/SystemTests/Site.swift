// A complete site for the real programs.
import Foundation
import Support
import Testing

/// A site with a server, a gpsd with a GNSS receiver, and a microphone that is a file.
final class Site {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    var children: [Process] = []
    var port = ""
    var gpsPort = ""

    init(loudness: Double = 16_384) throws {
        for name in ["", "/state", "/run", "/data"] {
            try FileManager.default.createDirectory(
                atPath: folder + name,
                withIntermediateDirectories: true
            )
        }
        try write("demo-token", "token", mode: 0o600)
        try write("demo-token\n", "tokens")
        let sine = (0..<320_000).map { Int16((sin(Double($0) * 0.3) * loudness).rounded()) }
        let bytes = sine.flatMap {
            [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
        }
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/mic.raw"))
        try write(fileMicrophone(folder + "/mic.raw"), "asound.conf")
        try write("pcm.null { type null }\n", "no-mic.conf")
        try startReceiver()
        try startGPSD()
        try configure()
    }

    deinit {
        for child in children where child.isRunning { kill(-child.processIdentifier, SIGKILL) }
    }

    func write(_ text: String, _ name: String, mode: Int = 0o644) throws {
        let path = folder + "/" + name
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    func configure(
        endpoint: String? = nil,
        gpsd: String? = nil,
        device: String = "mic",
        more: String = "",
        audio: String = ""
    ) throws {
        try write(
            """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            endpoint = "\(endpoint ?? "http://127.0.0.1:\(port)/api/ingest")"
            token_file = "\(folder)/token"
            \(more)
            [beacons]
            enabled = false
            [location]
            gpsd = "127.0.0.1:\(gpsd ?? gpsPort)"
            [audio]
            device = "\(device)"
            \(audio)

            """,
            "waypost.toml"
        )
    }

    private func startReceiver() throws {
        let output = Pipe()
        let program = Tree.program("waypost-receiver")
        try start(
            program,
            [
                "--listen", "127.0.0.1:0", "--data", "\(folder)/data", "--tokens",
                "\(folder)/tokens",
            ],
            output
        )
        port = try output.number(after: "http://127.0.0.1:")
    }

    private func startGPSD() throws {
        let route = Process()
        route.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        let root = Tree.root
        route.arguments = [root.path + "/Tests/Peers/route.py", "--minutes", "5"]
        let nmea = Pipe()
        route.standardOutput = nmea
        try route.run()
        let data = nmea.fileHandleForReading.readDataToEndOfFile()
        try data.write(to: URL(fileURLWithPath: folder + "/route.nmea"))
        gpsPort = "\(freePort())"
        try start(
            Tree.tool("gpsfake"),
            ["-q", "-P", gpsPort, "-c", "0.25", folder + "/route.nmea"],
            FileHandle.nullDevice
        )
        try waitUntil("gpsd") { try devices() == "there" }
    }

    /// Returns the devices that gpsd reports, as text; `gpsd` while it reports none.
    private func devices() throws -> String {
        try configure()
        let text = try run("devices").output
        let block = text.components(separatedBy: "GPSD\n").last ?? ""
        return block.contains("/dev/") ? "there" : block.contains("none") ? "gpsd" : "refused"
    }

    func start(_ program: String, _ arguments: [String], _ output: Any) throws {
        children.append(
            try .started(program, arguments, output: output, environment: environment)
        )
    }

    var environment: [String: String] {
        ProcessInfo.processInfo.environment.merging([
            "ALSA_CONFIG_PATH": folder + "/asound.conf"
        ]) { $1 }
    }

    func run(
        _ arguments: [String],
        _ more: [String: String] = [:]
    ) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
        process.arguments = arguments + ["--config", folder + "/waypost.toml"]
        process.environment = environment.merging(more) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }

    func run(_ arguments: String...) throws -> (status: Int32, output: String) {
        try run(arguments)
    }

    /// The checks of `doctor --json` by part; the last one of a part with several.
    func examine(
        _ more: [String: String] = [:]
    ) throws -> (status: Int32, checks: [String: [String: Any]]) {
        let (status, text) = try run(["doctor", "--json"], more)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let checks = try #require(object?["checks"] as? [[String: Any]])
        var byPart: [String: [String: Any]] = [:]
        for check in checks { byPart[check["part"] as? String ?? ""] = check }
        return (status, byPart)
    }
}
