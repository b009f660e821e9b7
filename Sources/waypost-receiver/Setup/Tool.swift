// Runs the programs that `setup` needs: systemctl, caddy, nginx.
import Foundation
import Host

/// A program in one of the system's folders.
struct Tool {
    let path: String

    /// Nil if it is not installed.
    init?(_ name: String) {
        let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        guard let path = places.map({ "\($0)/\(name)" }).first(where: canRun) else { return nil }
        self.path = path
    }

    /// Runs it to its end; returns whether its exit status was 0, and what it printed.
    func run(_ arguments: [String], home: String? = nil) throws(SystemError) -> (
        isSuccess: Bool, output: String
    ) {
        var environment = ChildProcess.ownEnvironment
        if let home {
            environment = environment.filter { !$0.hasPrefix("HOME=") } + ["HOME=\(home)"]
        }
        // Not `Descriptor`: Swift 6.0.3 crashes on one beside a `ChildProcess` in a function.
        let pipe = try makePipe()
        defer { close(pipe.reading) }
        let process = try start(arguments, environment, output: pipe.writing)
        let bytes = try readAll(from: pipe.reading, path)
        return (process.wait().isSuccess, String(decoding: bytes, as: UTF8.self))
    }

    /// Starts it, and closes `output` in this process.
    private func start(
        _ arguments: [String],
        _ environment: [String],
        output: Int32
    ) throws(SystemError) -> ChildProcess {
        defer { close(output) }
        let nothing = try Descriptor(opening: "/dev/null", O_RDONLY)
        return try ChildProcess(
            path,
            arguments,
            environment: environment,
            files: [STDIN_FILENO: nothing.number, STDOUT_FILENO: output, STDERR_FILENO: output]
        )
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
        guard !done.isSuccess else { return }
        throw Failure(
            "systemctl \(verb) \(unit): \(done.output.trimmingCharacters(in: .whitespacesAndNewlines)); "
                + "see: sudo journalctl -u \(unit) -n 20"
        )
    }
}
