package import Foundation
import Support

/// A test's own server: the real program, on a port that the kernel chose.
package final class ReceiverProcess {
    package let folder: String
    package private(set) var base = URL(fileURLWithPath: "/")
    private var process = Process()
    private let arguments: [String]
    private let environment: [String: String]

    package var port: UInt16 { UInt16(base.port ?? 0) }

    package var pid: Int32 { process.processIdentifier }

    package init(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        in place: String? = nil
    )
        throws
    {
        folder = place ?? NSTemporaryDirectory() + "waypost-receiver-" + UUID().uuidString
        self.arguments = arguments
        self.environment = environment
        try start()
    }

    /// Starts or restarts it on another port with the same data.
    package func start() throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: Tree.program("waypost-receiver"))
        process.arguments = ["--listen", "127.0.0.1:0", "--data", folder, "--quiet"] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        var line = ""
        while !line.hasSuffix("\n") {
            guard let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty
            else {
                throw NeverHappened(what: "the receiver's first line")
            }
            line += String(decoding: byte, as: UTF8.self)
        }
        let words = line.split(separator: " ")
        guard words.count > 3, words[1] == "listening",
            let url = URL(string: String(words[3].dropLast()))
        else { throw NeverHappened(what: "an address in \(line)") }
        base = url
    }

    package func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Terminates it; returns its exit status.
    package func terminate() -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    deinit {
        if process.isRunning { kill() }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Returns every record in the files of a stream.
    package func records(_ stream: String) throws -> [[String: Any]] {
        guard let names = FileManager.default.enumerator(atPath: folder) else { return [] }
        var records: [[String: Any]] = []
        for case let name as String in names
        where name.hasPrefix("stream=\(stream)/") && name.hasSuffix(".ndjson") {
            for line in try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")).split(
                separator: 10
            ) {
                guard let record = try JSONSerialization.jsonObject(with: line) as? [String: Any]
                else {
                    throw NeverHappened(what: "a JSON object a line")
                }
                records.append(record)
            }
        }
        return records
    }
}
