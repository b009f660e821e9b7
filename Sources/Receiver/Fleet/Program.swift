// Programs that the receiver starts.
import CLinux
import Glibc
import Host

/// Started by its path, never by a shell, in a process group of its own; it writes where this process does.
struct Program {
    let path: String
    var arguments: [String] = []
    var environment = Self.ownEnvironment
    /// On its standard input; at most 64 kB.
    var input: [UInt8] = []

    /// Between two looks whether it has ended.
    private static let step = Duration.milliseconds(50)

    /// Waits for its end; after `limit`, or when `stop` is raised, it is killed with its process group.
    ///
    /// Throws Trouble where its exit status is not 0, or it was killed.
    func run(limit: Duration, until stop: StopSignal) throws {
        let child = try start()
        let end = SystemClock().now() + limit
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            guard SystemClock().now() < end, !stop.sleep(for: Self.step) else {
                kill(-child, SIGKILL)
                waitpid(child, &status, 0)
                throw Trouble("\(path): killed after \(limit)")
            }
        }
        guard status != 0 else { return }
        let signal = status & 0x7F
        throw Trouble(
            "\(path): " + (signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)")
        )
    }

    private func start() throws -> pid_t {
        var ends = [Int32](repeating: -1, count: 2)
        // Closed in programs that another thread starts meanwhile.
        guard waypost_pipe(&ends) == 0 else { throw Trouble("pipe", path) }
        defer { ends.forEach { close($0) } }
        // A pipe takes 64 kB at once (pipe(7)): nobody has to read it.
        writeAll(input, to: ends[1])
        var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        // Standard output has one line, which tells where the server listens.
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        prepare(&attributes)
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        var environment = environment.map { strdup($0) } + [nil]
        defer { (words + environment).forEach { free($0) } }
        var child = pid_t()
        let code = posix_spawn(&child, path, &actions, &attributes, &words, &environment)
        guard code == 0 else { throw Trouble("\(path): \(String(cString: strerror(code)))") }
        return child
    }

    /// A process group of its own, and signals as they are in a program that was just started.
    private func prepare(_ attributes: inout posix_spawnattr_t) {
        var (none, defaults) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))
    }

    /// `NAME=value`, as this process has it.
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
