// The directory that a command is about, and how it tells of a failure.
import ArgumentParser
import Glibc
import Host
import Receiver

/// `--data DIR`.
struct DataLocation: ParsableArguments {
    @Option(help: "The receiver's data.") var data = "./waypost-data"

    func validate() throws {
        guard BucketOptions.isBucket(data) else { return }
        throw ValidationError(
            "a receiver before a bucket keeps no codes, devices, viewers or index: "
                + "this command needs --data of a folder"
        )
    }

    /// A failure in words, exit status 1.
    func perform<Value>(_ body: (Enrolments) throws -> Value) throws -> Value {
        try orFail { try body(try Enrolments(directory: data)) }
    }

    func orFail<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw failure("\(error)") }
    }

    /// Says what is wrong on standard error; exit status 1.
    func failure(_ text: String) -> ExitCode {
        complain(text)
        return ExitCode(1)
    }

    /// A directory that is not there is not made by a question.
    func expectThere() throws { try Self.expectThere(data) }

    static func expectThere(_ data: String) throws {
        guard access(data, F_OK) != 0 else { return }
        complain("there is no folder \(data); --data names that of the receiver")
        throw ExitCode(1)
    }

    /// What is given out in another folder than the receiver's opens nothing.
    func warnIfNoReceiver() {
        guard access("\(data)/.receiver.sqlite", F_OK) != 0 else { return }
        complain("no receiver has run on \(data) yet: this is good only for one that does")
    }
}

/// What a command prints must be there when it ends with 0: a code is shown once.
func expectPrinted() {
    // Who has closed it wants the exit status alone.
    guard fflush(nil) != 0, errno != EBADF else { return }
    complain("standard output: \(String(cString: strerror(errno))); what is there is not whole")
    exit(1)
}

/// A line on standard error.
func tell(_ line: String) { writeAll(Array("\(line)\n".utf8), to: STDERR_FILENO) }

func complain(_ text: String) { tell("waypost-receiver: \(text)") }
