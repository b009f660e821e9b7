// Starts external programs.
import Glibc

/// Starts a program in a process group of its own, and returns its process id.
///
/// `words`: its name and arguments. `files`: its descriptor on the left is this process's on the
/// right; one that is not named is inherited unless it closes on exec. No signal is blocked in it,
/// and those of `defaults` (nil: all) have their default action. Throws a `SystemError`.
package func spawn(
    _ path: String,
    _ words: [String],
    environment: [String],
    files: KeyValuePairs<Int32, Int32>,
    defaults: [Int32]? = nil
) throws -> Int32 {
    var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
    }
    for (own, ours) in files { posix_spawn_file_actions_adddup2(&actions, ours, own) }
    var (none, reset) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    if defaults == nil { sigfillset(&reset) } else { sigemptyset(&reset) }
    for signal in defaults ?? [] { sigaddset(&reset, signal) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &reset)
    posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    posix_spawnattr_setflags(&attributes, Int16(flags))
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup($0) } + [nil]
    defer { (arguments + variables).forEach { free($0) } }
    var child = pid_t()
    let code = posix_spawn(&child, path, &actions, &attributes, &arguments, &variables)
    guard code == 0 else { throw SystemError("posix_spawn", on: path, code: code) }
    return child
}
