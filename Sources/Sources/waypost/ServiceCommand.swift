// Programs of the system that commands call.
import Glibc

/// A program of the system that is run for its effect.
enum ServiceCommand {
    /// Waits for its end; true where its exit status is 0.
    ///
    /// It gets no environment, and its words go where those of this program go.
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
