// Runs the programs that `setup` needs: systemctl, caddy, nginx.
import Foundation
import Host
import Receiver

/// A program in one of the system's folders.
struct Tool {
    let path: String

    /// Nil if it is not installed.
    init?(_ name: String) {
        let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        guard let path = places.map({ "\($0)/\(name)" }).first(where: canRun) else { return nil }
        self.path = path
    }

    /// Runs it to its end; returns the status and what it printed.
    func run(_ arguments: [String], home: String? = nil) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        if let home {
            process.environment = ProcessInfo.processInfo.environment.merging(["HOME": home]) { $1 }
        }
        let pipe = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}

/// The service manager; nil where systemd is not running, such as in a container.
struct SystemManager {
    private let tool: Tool

    init?() {
        guard access("/run/systemd/system", F_OK) == 0, let tool = Tool("systemctl") else {
            return nil
        }
        self.tool = tool
    }

    /// Throws a `Failure` with the command and what it printed.
    func run(_ verb: String, _ unit: String) throws {
        let done = try tool.run([verb, unit])
        guard done.status != 0 else { return }
        throw Failure(
            "systemctl \(verb) \(unit): \(done.output.trimmingCharacters(in: .whitespacesAndNewlines)); "
                + "see: sudo journalctl -u \(unit) -n 20"
        )
    }
}
