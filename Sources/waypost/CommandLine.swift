// Code that the commands share: configuration options, environment, output and errors.
import ArgumentParser
import Configuration
import Daemon
import Glibc
import Host
import Setup

/// The option that names the configuration file.
struct ConfigurationOptions: ParsableArguments {
    private static let standard = "/etc/waypost/waypost.toml"

    @Option(name: .long, help: .value("FILE", "The configuration file."), completion: .file())
    var config = standard

    /// Reads the configuration, with the origin of each value.
    ///
    /// An invalid one ends the command with status 78 and all errors, an unreadable one with 2.
    func load(warns: Bool = true) throws -> LoadedConfiguration {
        do {
            return try read(warns: warns)
        } catch {
            throw failure("\(error)", status: error.isUnread ? 2 : 78)
        }
    }

    private func read(warns: Bool) throws(ConfigurationErrors) -> LoadedConfiguration {
        let loaded = try Configuration.load(path: config, environment: Environment.all)
        for warning in warns ? loaded.warnings : [] { Output.error("warning: \(warning)") }
        return loaded
    }

    /// The configuration without a file.
    var defaults: Configuration? {
        try? Configuration.check([], file: config, environment: Environment.all).values
    }

    /// Reads the configuration for commands that inspect the machine; without a file, the defaults.
    func valuesOrDefaults() throws -> Configuration {
        // A file that was named must be there.
        guard config == Self.standard, access(Configuration.inForce(config), F_OK) != 0,
            errno == ENOENT, let defaults
        else { return try load().values }
        Output.error("warning: \(config) does not exist: continuing with the defaults")
        return defaults
    }

    /// Reads the configuration for commands that only ask the daemon.
    ///
    /// If this user may not read the file, returns the defaults, which suffice to find the socket.
    func loadToAsk() throws -> Configuration {
        guard access(config, R_OK) != 0, errno == EACCES, let defaults
        else { return try loadOrAsk().values }
        Output.error(
            "warning: \(config): this user may not read it; asking the daemon at \(defaults.socketPath)"
        )
        return defaults
    }

    /// Reads the configuration for commands that ask the gateway.
    ///
    /// If the file is invalid and a gateway runs with an earlier one, returns its valid parts and
    /// `isRight` false: that suffices to ask the gateway.
    func loadOrAsk(warns: Bool = true) throws -> (values: Configuration, isRight: Bool) {
        do {
            return (try read(warns: warns).values, true)
        } catch {
            let found = Configuration.ofRunningGateway(path: config, environment: Environment.all)
            guard let found else { throw failure("\(error)", status: error.isUnread ? 2 : 78) }
            let problems = "\(error)".replacing(text: "\n", with: "\nwarning: ")
            Output.error("warning: \(problems)")
            Output.error("warning: asking the gateway, which runs with an earlier configuration")
            return (found, false)
        }
    }
}

/// The process's environment, read once.
enum Environment {
    /// Read from /proc, because any thread may change C's `environ`.
    static let all: [String: String] = {
        let file = try? SmallFile.read("/proc/self/environ", limit: 1 << 24)
        var all: [String: String] = [:]
        for entry in file?.bytes.split(separator: 0) ?? [] {
            guard let equals = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let value = String(decoding: entry[(equals + 1)...], as: UTF8.self)
            all[String(decoding: entry[..<equals], as: UTF8.self)] = value
        }
        return all
    }()
}

/// Standard output and error.
enum Output {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The terminal's columns and rows; nil for anything else, or one that does not know its size.
    static var terminalSize: (columns: Int, rows: Int)? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
        else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Whether to colour: only on a terminal, and never with NO_COLOR (no-color.org).
    static var isColoured: Bool { isTerminal && (Environment.all["NO_COLOR"] ?? "").isEmpty }

    static func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes to standard output, or exits with status 2: partial output could pass for a result.
    static func write(_ bytes: [UInt8]) {
        // A caller that has closed standard output wants only the exit status.
        guard let failure = writeAll(bytes, to: STDOUT_FILENO), failure.code != EBADF else {
            return
        }
        error("standard output: \(failure.reason); the output is incomplete")
        exit(2)
    }

    /// Writes to standard error, without an end of line.
    static func errorPart(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }

    static func error(_ text: String) { errorPart("\(text)\n") }
}

/// The text of commands before the gateway's first start.
let nothingRecorded = "nothing recorded yet: there is no queue in the state directory\n"

/// Runs `body`; prints its error and ends the command with exit status 2.
func reporting<Value>(_ command: String, _ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch {
        throw failure("\(command): \(error)", status: 2)
    }
}

/// Prints why the command fails; returns its exit status.
func failure(_ text: String, status: Int32) -> ExitCode {
    Output.error(text)
    return ExitCode(status)
}

/// Fails unless the value of `--timeout` is a time above zero.
func expectTimeout(_ text: String) throws {
    guard duration(of: text).map({ $0 <= .zero }) ?? true else { return }
    throw ValidationError(
        "\"\(text.blanked)\" is not a valid time-out; use a number with a unit, such as 30s or 5m"
    )
}

/// A progress line on the terminal, updated at most twice per second.
final class ProgressLine {
    /// Whether standard error is a terminal.
    let isShown = isatty(STDERR_FILENO) == 1
    private let clock = SystemClock()
    private var shownAt: BootInstant
    private var isOnLine = false

    init() { shownAt = clock.now() }

    func show(_ text: @autoclosure () -> String) {
        guard isShown, clock.now() - shownAt > .milliseconds(500) else { return }
        shownAt = clock.now()
        isOnLine = true
        Output.errorPart("\r\u{1B}[K\(text())")
    }

    /// Prints a line that stays.
    func say(_ line: String) {
        clear()
        Output.error(line)
    }

    func clear() {
        if isOnLine { Output.errorPart("\r\u{1B}[K") }
        isOnLine = false
    }
}
