// Runs system programs such as systemctl and udevadm.
import Host

/// Runs a system program for its effect.
enum ServiceCommand {
    /// Runs a program and waits for it; returns true if its exit status is 0.
    ///
    /// The program gets an empty environment, and shares this process's output and terminal.
    @discardableResult
    static func run(_ program: String, _ arguments: [String]) -> Bool {
        do {
            return try ChildProcess(program, arguments, environment: [], hasOwnGroup: false)
                .wait().isSuccess
        } catch {
            Output.error("\(program): \(error.reason)")
            return false
        }
    }
}
