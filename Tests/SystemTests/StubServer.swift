// A small server of a test's own, and how programs are started beside one.
import Foundation

/// A server in Python that prints its port in its first line.
final class StubServer {
    let port: String
    private let process: Process

    /// `argument`: the script's.
    init(_ script: String, _ argument: String) throws {
        let output = Pipe()
        process = try .started("/usr/bin/python3", ["-c", script, argument], output: output)
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        port = line.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Called at the end of the test, which so holds on to it until then.
    func stop() { process.terminate() }
}

extension Process {
    static func started(
        _ program: String,
        _ arguments: [String],
        output: Any = FileHandle.nullDevice
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}
