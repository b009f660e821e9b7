// Runs system programs such as systemctl and udevadm.
import Glibc

/// Runs a system program for its effect.
enum ServiceCommand {
    /// Runs a program and waits for it; returns true if its exit status is 0.
    ///
    /// The program gets an empty environment, and shares this process's output.
    @discardableResult
    static func run(_ program: String, _ arguments: [String]) -> Bool {
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        var child = pid_t()
        let code = posix_spawn(&child, program, nil, nil, &words, nil)
        guard code == 0 else {
            Output.error("\(program): \(String(cString: strerror(code)))")
            return false
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }
}
