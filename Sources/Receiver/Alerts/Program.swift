// Runs external programs.
import CLinux
import Glibc
import Host

/// A program, started by its path without a shell, in its own process group.
///
/// Its output goes to this process's standard error.
struct Program {
    let path: String
    var arguments: [String] = []
    var environment = Self.ownEnvironment
    /// The data for its standard input; at most 64 kB.
    var input: [UInt8] = []

    /// The interval of checks for its end.
    private static let step = Duration.milliseconds(50)

    /// Runs it to its end; kills its process group after `limit`, or when `stop` is raised.
    ///
    /// Throws a `Failure` if its exit status is not 0, or it was killed.
    func run(limit: Duration, until stop: StopSignal) throws {
        let child = try start()
        let end = SystemClock().now() + limit
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            guard SystemClock().now() < end, !stop.sleep(for: Self.step) else {
                kill(-child, SIGKILL)
                waitpid(child, &status, 0)
                throw Failure("\(path): killed after \(limit)")
            }
        }
        guard status != 0 else { return }
        let signal = status & 0x7F
        throw Failure(
            "\(path): " + (signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)")
        )
    }

    private func start() throws -> pid_t {
        var ends = [Int32](repeating: -1, count: 2)
        // Closed on exec in programs that other threads start at the same time.
        guard waypost_pipe(&ends) == 0 else { throw SystemError.last("pipe", on: path) }
        defer { ends.forEach { close($0) } }
        // A pipe holds 64 kB (pipe(7)), so nobody has to read it yet.
        writeAll(input, to: ends[1])
        do {
            return try spawn(
                path,
                [path] + arguments,
                environment: environment,
                // Standard output has only the line with the server's address.
                files: [STDIN_FILENO: ends[0], STDOUT_FILENO: STDERR_FILENO],
                defaults: [SIGPIPE]
            )
        } catch let error as SystemError {
            throw Failure("\(path): \(error.reason)")
        }
    }

    /// This process's environment, as `NAME=value`.
    static var ownEnvironment: [String] {
        var all: [String] = []
        var entry = environ
        while let text = entry.pointee {
            all.append(String(cString: text))
            entry += 1
        }
        return all
    }
}
