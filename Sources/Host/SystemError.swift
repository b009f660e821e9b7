// A system call that failed, with its own name and the kernel's message.
import CLinux
import Glibc

/// A system call that returned an error: what was called, on what, and errno.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    package var call: String
    package var subject: String
    package var code: Int32

    package init(_ call: String, on subject: String = "", code: Int32) {
        self.call = call
        self.subject = subject
        self.code = code
    }

    /// The error of the call just made; read errno in the very next statement.
    package static func last(_ call: String, on subject: String = "") -> Self {
        Self(call, on: subject, code: errno)
    }

    /// The kernel's message without the call.
    package var reason: String { String(cString: strerror(code)) }

    package var description: String {
        let place = subject.isEmpty ? "" : " \(subject)"
        return "\(call)\(place): \(reason) (errno \(code))"
    }
}
