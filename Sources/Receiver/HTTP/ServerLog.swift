// A line for each batch and refusal, on standard error.
import Foundation
import Glibc
import Host

/// Lines that wait for nobody: one that standard error does not take at once is lost.
package struct ServerLog: Sendable {
    private let isQuiet: Bool

    package init(isQuiet: Bool) { self.isQuiet = isQuiet }

    func write(_ line: String) {
        if !isQuiet { warn(line) }
    }

    /// However quiet it is: a person has to see to it.
    func warn(_ line: String) {
        // A pipe that is ready takes so much at once (PIPE_BUF, pipe(7)).
        let text =
            Array("\(Date().formatted(.iso8601)) \(Self.printable(line))".utf8.prefix(4095)) + [10]
        var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else { return }
        _ = Glibc.write(STDERR_FILENO, text, text.count)
    }

    /// What a client sent begins no line and moves no cursor.
    static func printable(_ line: String) -> String {
        String(String.UnicodeScalarView(line.unicodeScalars.map { $0.isInvisible ? "?" : $0 }))
    }
}
