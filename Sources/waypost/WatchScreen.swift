// The alternate screen of `waypost status --watch`.
import CLinux
import Glibc
import Host

/// Draws on the terminal's alternate screen, which leaves the scrollback as it was.
///
/// `q` and the usual signals restore the terminal and end the process; so does `close`.
final class WatchScreen: Sendable {
    private struct Contents: Sendable {
        /// Renders the last report for the terminal's present size.
        var text: (@Sendable (_ columns: Int, _ rows: Int) -> String)?
        /// The exit status when the user ends the command.
        var exitStatus: Int32 = 0
        var isOpen = true
    }

    /// Enters the alternate screen, hides the cursor, does not wrap; and the reverse.
    private static let (enter, leave) = (
        "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l", "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"
    )
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH]

    private let contents = StateBox(Contents())
    /// The terminal's mode at the start; nil if standard input is not a terminal.
    private let mode: termios?

    /// Takes over the terminal, and starts the threads that read keys and signals.
    init() throws {
        var mode = termios()
        self.mode = tcgetattr(STDIN_FILENO, &mode) == 0 ? mode : nil
        var blocked = Self.signalSet()
        pthread_sigmask(SIG_BLOCK, &blocked, nil)
        if self.mode != nil {
            mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
            // A suspended process could not restore the terminal.
            mode.c_cc.10 = 0
            tcsetattr(STDIN_FILENO, TCSANOW, &mode)
        }
        Output.write(Self.enter)
        try OwnThread("signals") { [self] in handleSignals() }.detach()
        if self.mode != nil { try OwnThread("keys") { [self] in readKeys() }.detach() }
    }

    /// Shows a text in the terminal's size, and again in each new size.
    func draw(_ text: @escaping @Sendable (Int, Int) -> String, exitStatus: Int32) {
        let failure = contents.update {
            $0.text = text
            $0.exitStatus = exitStatus
            return Self.draw($0)
        }
        if failure != nil { end(2) }
    }

    /// Restores the terminal.
    func close() {
        contents.update {
            guard $0.isOpen else { return }
            $0.isOpen = false
            if var mode { tcsetattr(STDIN_FILENO, TCSANOW, &mode) }
            writeAll(Array(Self.leave.utf8), to: STDOUT_FILENO)
        }
    }

    /// Returns why the terminal could not be written to; nil if it was.
    private static func draw(_ contents: Contents) -> SystemError? {
        // A window may change its size before the first report.
        guard contents.isOpen, let render = contents.text else { return nil }
        let (columns, rows) = Output.terminalSize ?? (80, 24)
        let lines = render(columns, rows).split(
            separator: "\n",
            omittingEmptySubsequences: false
        ).dropLast()
        // Without an end of line after the last one, which would scroll the first one away.
        let text = "\u{1B}[H" + lines.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J"
        return writeAll(Array(text.utf8), to: STDOUT_FILENO)
    }

    private static func signalSet() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }

    private func handleSignals() {
        var set = Self.signalSet()
        while true {
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0 else { continue }
            guard number == SIGWINCH else { return end(128 + number) }
            _ = contents.update { Self.draw($0) }
        }
    }

    private func readKeys() {
        var key: UInt8 = 0
        while read(STDIN_FILENO, &key, 1) > 0 {
            guard key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") else { continue }
            return end(contents.value.exitStatus)
        }
    }

    private func end(_ status: Int32) {
        close()
        exit(status)
    }
}
