import Foundation
import Support
import Testing

/// A gateway whose token is refused, against the reference receiver.
@Suite struct ReachSystemTests {
    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }

    private func run(_ arguments: String...) throws -> Outcome {
        try Process.run(
            Tree.program("waypost"),
            arguments + ["--config", folder + "/waypost.toml"]
        )
    }

    private func start(_ program: String, _ arguments: [String], _ output: Any?) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Tree.program(program))
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    private func report() throws -> [String: Any] {
        let text = try run("status", "--json").output
        let report = try? JSONSerialization.jsonObject(with: Data(text.utf8))
        return report as? [String: Any] ?? [:]
    }

    private func write(_ text: String, _ name: String) throws {
        let path = folder + "/" + name
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    /// The port of a receiver that said where it listens.
    private func listeningPort(_ output: Pipe) -> String? {
        var text = ""
        while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
            let after = text.components(separatedBy: "127.0.0.1:").dropFirst().first
            if let after, after.contains(where: { !$0.isNumber }) {
                return String(after.prefix { $0.isNumber })
            }
        }
        return nil
    }

    @Test func tokenThatWasRefused_isForgotten_whenTheFileChanges() throws {
        try FileManager.default.createDirectory(
            atPath: folder + "/state",
            withIntermediateDirectories: true
        )
        try write("good\n", "tokens")
        try write("bad", "token")
        let output = Pipe()
        let receiver = try start(
            "waypost-receiver",
            [
                "--listen", "127.0.0.1:0", "--data", folder + "/data", "--tokens",
                folder + "/tokens",
            ],
            output
        )
        defer { kill(receiver.processIdentifier, SIGKILL) }
        let port = try #require(listeningPort(output))
        let text = """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            endpoint = "http://127.0.0.1:\(port)/api/ingest"
            token_file = "\(folder)/token"
            interval = "24h"
            [beacons]
            enabled = false
            [location]
            enabled = false
            [audio]
            enabled = false

            """
        try write(text, "waypost.toml")
        let daemon = try start(
            "waypost",
            ["run", "--config", folder + "/waypost.toml"],
            FileHandle.nullDevice
        )
        defer { kill(daemon.processIdentifier, SIGKILL) }
        #expect(try eventually { try report()["daemon"] != nil })
        #expect(try run("sync").status == 1)
        #expect(try eventually { try run("status", "--json").output.contains("token refused") })
        // The next tick of the grid may be a day away: only the change of the file calls for a sync.
        try write("good", "token")
        #expect(
            try eventually {
                let streams = try report()["streams"] as? [String: [String: Any]]
                return streams?["waypost_events"]?["uploaded"] as? Int ?? 0 > 0
            }
        )
        #expect(
            try eventually {
                let upload = try report()["upload"] as? [String: Any]
                return upload?["bytes_today"] as? Int ?? 0 > 500
            }
        )
        #expect(try run("status").output.contains(" today"))
    }
}
