// The data directory of a command, and its error messages.
import ArgumentParser
import Configuration
import Glibc
import Host
import ServerArchive
import ServerWeb

/// The options `--data DIR` and `--config FILE`, which both name the data folder.
struct DataLocation: ParsableArguments {
    @Option(
        name: .customLong("data"),
        help: ArgumentHelp(
            "The server's data folder.",
            discussion: "Without it that of the configuration file, else ./waypost-data.",
            valueName: "dir"
        )
    )
    var given: String?
    @Option(help: ArgumentHelp("The server's configuration file.", valueName: "file"))
    var config: String?

    /// The folder, as `validate` found it: later, root may have become a user who cannot read the
    /// configuration file.
    private(set) var data = "./waypost-data"

    mutating func validate() throws {
        do {
            data = try given ?? configured() ?? data
        } catch {
            report("\(error)")
            throw ExitCode(78)
        }
        guard BucketOptions.isBucket(data) else { return }
        throw ValidationError(
            "a receiver with a bucket has no codes, devices, viewers or index; "
                + "set --data to a folder"
        )
    }

    /// Returns the data folder of the configuration file; nil if none applies.
    private func configured() throws -> String? {
        if config == nil, access(ReceiverSettings.path, R_OK) != 0 { return nil }
        return try ReceiverSettings.load(config ?? ReceiverSettings.path).values.data
    }

    /// Runs `body` on the enrolments; prints an error and exits with status 1 on failure.
    func perform<Value>(_ body: (Enrolments) throws -> Value) throws -> Value {
        try orFail { try body(try Enrolments(directory: data)) }
    }

    func orFail<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw failure("\(error)") }
    }

    /// Prints an error; returns exit status 1.
    func failure(_ text: String) -> ExitCode {
        complain(text)
        return ExitCode(1)
    }

    /// Fails unless a server has used the folder, and this user may change it.
    ///
    /// Root becomes the folder's owner.
    func expectThere() throws {
        try expectServed()
        try orFail { try DataOwner.become(of: data) }
    }

    /// The same without a change of the user.
    func expectServed() throws {
        try expectConfiguration()
        try Self.expectThere(data)
        if access(data, R_OK | W_OK | X_OK) != 0 {
            throw failure("\(data): \(Self.reason); run the command with sudo")
        }
        guard access("\(data)/.receiver.sqlite", F_OK) != 0 else { return }
        throw failure(
            "\(data) is not the data folder of a server: no server has run with it; start one "
                + "(sudo systemctl start waypost-receiver), or set --data to the folder of yours"
        )
    }

    /// Fails unless this user may read the configuration file that names the folder.
    func expectConfiguration() throws {
        if given == nil, config == nil, access(ReceiverSettings.path, F_OK) == 0,
            access(ReceiverSettings.path, R_OK) != 0
        {
            throw failure(
                "this user may not read \(ReceiverSettings.path); run the command with sudo, or set --data"
            )
        }
    }

    static func expectThere(_ data: String) throws {
        guard access(data, F_OK) != 0 else { return }
        complain(
            errno == EACCES
                ? "\(data): \(reason); run the command with sudo"
                : "there is no folder \(data); set --data to the server's folder"
        )
        throw ExitCode(1)
    }

    private static var reason: String { String(cString: strerror(errno)) }
}

/// Fails unless all output was written: a code is shown only once.
func expectPrinted() {
    // With a closed standard output only the exit status matters.
    guard fflush(nil) != 0, errno != EBADF else { return }
    complain("standard output: \(String(cString: strerror(errno))); the output is incomplete")
    exit(1)
}

/// Prints a line on standard error.
func report(_ line: String) { writeAll(Array("\(line)\n".utf8), to: STDERR_FILENO) }

func complain(_ text: String) { report("waypost-receiver: \(text)") }
