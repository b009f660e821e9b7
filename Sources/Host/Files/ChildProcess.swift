// Programs that this process runs.
import CLinux
import Glibc

/// How a child process ended.
package struct ExitStatus: Sendable, CustomStringConvertible {
    /// As waitpid(2) returns it.
    private var status: Int32 = 0

    package var isSuccess: Bool { status == 0 }

    package var description: String {
        let signal = status & 0x7F
        if signal != 0 { return "signal \(signal) (\(String(cString: strsignal(signal))))" }
        return "exit status \(status >> 8 & 0xFF)"
    }

    /// Waits for the end of a child process.
    package init(waitingFor child: Int32) {
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
    }
}

/// A program, started by its path without a shell.
///
/// It is killed by deinit, with its process group, unless `wait` was called.
package final class ChildProcess {
    private let number: pid_t
    /// The argument of kill(2): its process group, if it has one of its own.
    private let target: pid_t
    /// Readable once it has ended (pidfd_open(2)).
    private let ended: Descriptor
    private var hasEnded = false

    /// Starts a program.
    ///
    /// `files`: its descriptor on the left is this process's on the right; one that is not named is
    /// inherited unless it closes on exec. No signal is blocked in it, and all have their default
    /// action. Throws a `SystemError`.
    package init(
        _ path: String,
        _ arguments: [String],
        environment: [String] = ChildProcess.ownEnvironment,
        files: KeyValuePairs<Int32, Int32> = [:],
        hasOwnGroup: Bool = true
    ) throws(SystemError) {
        number = try spawn([path] + arguments, environment, files, hasOwnGroup)
        target = hasOwnGroup ? -number : number
        let descriptor = waypost_pidfd(number)
        guard descriptor >= 0 else {
            let error = SystemError.last("pidfd_open")
            Glibc.kill(target, SIGKILL)
            _ = ExitStatus(waitingFor: number)
            throw error
        }
        ended = Descriptor(owning: descriptor)
    }

    deinit {
        guard !hasEnded else { return }
        kill(SIGKILL)
        _ = wait()
    }

    /// Ready once it has ended.
    package var end: PollEntry { PollEntry(ended.number) }

    /// Sends a signal to it and its process group.
    package func kill(_ signal: Int32) { Glibc.kill(target, signal) }

    /// Waits for its end; to be called once.
    package func wait() -> ExitStatus {
        hasEnded = true
        return ExitStatus(waitingFor: number)
    }

    /// This process's environment, as `NAME=value`.
    package static var ownEnvironment: [String] {
        var all: [String] = []
        var entry = environ
        while let text = entry.pointee {
            all.append(String(cString: text))
            entry += 1
        }
        return all
    }
}

private func spawn(
    _ words: [String],
    _ environment: [String],
    _ files: KeyValuePairs<Int32, Int32>,
    _ hasOwnGroup: Bool
) throws(SystemError) -> pid_t {
    var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
    }
    for (own, ours) in files { posix_spawn_file_actions_adddup2(&actions, ours, own) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    let group = hasOwnGroup ? POSIX_SPAWN_SETPGROUP : 0
    let flags = group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    posix_spawnattr_setflags(&attributes, Int16(flags))
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup($0) } + [nil]
    defer { (arguments + variables).forEach { free($0) } }
    var child = pid_t()
    let code = posix_spawn(&child, words[0], &actions, &attributes, &arguments, &variables)
    guard code == 0 else { throw SystemError("posix_spawn", on: words[0], code: code) }
    return child
}
