// Listens to everything that a broker passes on.
internal import Foundation

/// A `mosquitto_sub` on all topics; killed at its end.
package final class MQTTListener {
    private let folder = TemporaryFolder()
    private let process: Process

    package init(_ broker: Mosquitto) throws {
        let path = folder.path + "/messages"
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        process = try .started(
            Tree.tool("mosquitto_sub"),
            ["-h", "127.0.0.1", "-p", "\(broker.port)", "-v", "-t", "#"],
            output: FileHandle(forWritingTo: URL(fileURLWithPath: path))
        )
    }

    deinit { process.killAndWait() }

    /// The messages so far, as lines `topic text`.
    private var lines: [Substring] {
        get throws {
            try String(contentsOfFile: folder.path + "/messages", encoding: .utf8)
                .split(separator: "\n")
        }
    }

    /// Returns the newest message of each topic.
    package func messages() throws -> [String: String] {
        let pairs = try lines.map { line in
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
        return Dictionary(pairs) { $1 }
    }

    /// Waits for `times` messages whose lines begin with `start`.
    package func wait(for start: String, times: Int = 1) throws {
        try waitUntil("\(times) of \(start)") {
            try lines.count { $0.hasPrefix(start) } >= times
        }
    }
}
