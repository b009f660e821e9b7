// The data directory of a command, and its error messages.
import ArgumentParser
import Glibc
import Host
import Receiver

/// The option `--data DIR`.
struct DataLocation: ParsableArguments {
    @Option(help: "The receiver's data.") var data = "./waypost-data"

    func validate() throws {
        guard BucketOptions.isBucket(data) else { return }
        throw ValidationError(
            "a receiver with a bucket has no codes, devices, viewers or index; "
                + "set --data to a folder"
        )
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

    /// Fails if the directory does not exist, so that a query does not create it.
    func expectThere() throws { try Self.expectThere(data) }

    static func expectThere(_ data: String) throws {
        guard access(data, F_OK) != 0 else { return }
        complain("there is no folder \(data); set --data to the receiver's folder")
        throw ExitCode(1)
    }

    /// Warns that a secret made in a folder without a receiver is useless.
    func warnIfNoReceiver() {
        guard access("\(data)/.receiver.sqlite", F_OK) != 0 else { return }
        complain("no receiver has run on \(data) yet: only a receiver with this folder accepts it")
    }
}

/// Fails unless all output was written: a code is shown only once.
func expectPrinted() {
    // With a closed standard output only the exit status matters.
    guard fflush(nil) != 0, errno != EBADF else { return }
    complain("standard output: \(String(cString: strerror(errno))); the output is incomplete")
    exit(1)
}

/// Prints a line on standard error.
func tell(_ line: String) { writeAll(Array("\(line)\n".utf8), to: STDERR_FILENO) }

func complain(_ text: String) { tell("waypost-receiver: \(text)") }
