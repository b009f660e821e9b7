// What the commands share: where the configuration is, the environment, output, errors.
import ArgumentParser
import Configuration
import Gateway
import Glibc
import Host

/// Where the configuration is.
struct ConfigurationOptions: ParsableArguments {
    @Option(name: .long, help: "The configuration file.")
    var config = "/etc/waypost/waypost.toml"

    /// Reads it; a wrong one ends the command with exit status 78 and every error listed, one that cannot be read now with 2.
    func values(warns: Bool = true) throws -> Configuration { try load(warns: warns).values }

    /// The same with where each value came from.
    func load(warns: Bool = true) throws -> LoadedConfiguration {
        do {
            let loaded = try Configuration.load(path: config, environment: Environment.all)
            for warning in warns ? loaded.warnings : [] { Output.error("warning: \(warning)") }
            return loaded
        } catch {
            Output.error("\(error)")
            throw ExitCode(error.isUnread ? 2 : 78)
        }
    }

    /// As `load`, for commands that only ask the daemon: of a file that this user may not read the defaults are taken,
    /// for its socket and what it answers are not in there.
    func loadToAsk() throws -> Configuration {
        guard access(config, R_OK) != 0, errno == EACCES,
            let defaults = try? Configuration.check([], file: config, environment: Environment.all)
        else { return try loadOrAsk().values }
        Output.error(
            "warning: \(config): this user may not read it; asks the daemon at \(defaults.values.socketPath)"
        )
        return defaults.values
    }

    /// As `load`; of a file that is wrong the right parts are taken where a gateway runs, with the one before it: what
    /// asks that gateway needs nothing else.
    func loadOrAsk(warns: Bool = true) throws -> (values: Configuration, isRight: Bool) {
        do {
            let loaded = try Configuration.load(path: config, environment: Environment.all)
            for warning in warns ? loaded.warnings : [] { Output.error("warning: \(warning)") }
            return (loaded.values, true)
        } catch {
            let found = Configuration.ofRunningGateway(path: config, environment: Environment.all)
            guard let found else {
                Output.error("\(error)")
                throw ExitCode(error.isUnread ? 2 : 78)
            }
            let problems = "\(error)".replacing(text: "\n", with: "\nwarning: ")
            Output.error("warning: \(problems)")
            Output.error("warning: asks the gateway, which runs with an earlier configuration")
            return (found, false)
        }
    }
}

/// The process's environment, read once.
enum Environment {
    /// From /proc, because C's `environ` is a variable that any thread may change.
    static let all: [String: String] = {
        var all: [String: String] = [:]
        for entry in bytes().split(separator: 0) {
            guard let equals = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let value = String(decoding: entry[(equals + 1)...], as: UTF8.self)
            all[String(decoding: entry[..<equals], as: UTF8.self)] = value
        }
        return all
    }()

    private static func bytes() -> [UInt8] {
        guard let file = fopen("/proc/self/environ", "r") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&block, 1, block.count, file), count > 0 {
            bytes += block.prefix(count)
        }
        return bytes
    }
}

/// Standard output and error.
enum Output {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Colour only on a terminal and never with NO_COLOR (no-color.org).
    static var isColoured: Bool { isTerminal && (Environment.all["NO_COLOR"] ?? "").isEmpty }

    static func write(_ text: String) { write(Array(text.utf8)) }

    /// Ends the program where it cannot be written: half a file on a full disk would pass for an answer.
    static func write(_ bytes: [UInt8]) {
        // Who has closed it wants the exit status alone.
        guard let failure = writeAll(bytes, to: STDOUT_FILENO), failure.code != EBADF else {
            return
        }
        error("standard output: \(failure.reason); what is there is not whole")
        exit(2)
    }

    /// Without an end of line.
    static func errorPart(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }

    static func error(_ text: String) { errorPart("\(text)\n") }
}

/// Errors in words, exit status 2.
func reporting<Value>(_ command: String, _ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch {
        Output.error("\(command): \(error)")
        throw ExitCode(2)
    }
}

/// A line on the terminal that follows something long, twice a second.
final class ProgressLine {
    /// Somebody may see it.
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

    /// A line that stays.
    func say(_ line: String) {
        clear()
        Output.error(line)
    }

    func clear() {
        if isOnLine { Output.errorPart("\r\u{1B}[K") }
        isOnLine = false
    }
}
