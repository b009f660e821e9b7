// A failed system call, with its name and the kernel's message.
import CLinux
import Glibc

/// A failed system call: its name, its object and errno.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    package var call: String
    package var subject: String
    package var code: Int32

    package init(_ call: String, on subject: String = "", code: Int32) {
        self.call = call
        self.subject = subject
        self.code = code
    }

    /// Returns the error of the call just made; read errno in the very next statement.
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
