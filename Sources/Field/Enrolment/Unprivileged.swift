// Runs the part of a root command that handles input from the network as the service's user.
import CLinux
import Glibc
import Host

/// The most bytes of a result, which is one token or message.
private let limit = 64 << 10

/// Calls `body` in a child process with the rights of `owner` only, and returns its result.
///
/// Without `owner` it is called here. Only for a process with one thread.
func asUser(_ owner: FileOwner?, _ body: () throws -> String) throws -> String {
    guard let owner else { return try body() }
    let pipe = try makePipe()
    let child = waypost_fork_as(owner.user, owner.group)
    if child == 0 { send(result(of: body), to: pipe.writing) }
    close(pipe.writing)
    let output = Descriptor(owning: pipe.reading)
    guard child > 0 else { throw SystemError("fork", code: -child) }
    defer { _ = ExitStatus(waitingFor: child) }
    let bytes = try readAll(from: output.number, limit: limit, "the child process")
    let lines = String(decoding: bytes, as: UTF8.self)
        .split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard lines.count == 2 else {
        throw Failure("the process that asks the server ended without an answer", code: .network)
    }
    if lines[0] == "ok" { return lines[1] }
    throw Failure(lines[1].plainWords(atMost: 1000), code: ErrorCode(rawValue: lines[0]))
}

/// Returns `ok`, or the code of a failure, in a line, and the result or the message behind it.
private func result(of body: () throws -> String) -> String {
    do {
        return "ok\n" + (try body())
    } catch {
        let failure = (error as? Failure) ?? Failure("\(error)")
        return "\(failure.code?.rawValue ?? "")\n\(failure.message)"
    }
}

/// Writes the result and ends the child process.
private func send(_ result: String, to output: Int32) -> Never {
    let bytes = Array(result.utf8.prefix(limit))
    _exit(write(output, bytes, bytes.count) == bytes.count ? 0 : 1)
}
