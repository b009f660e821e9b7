// Output and errors of the bench.
import Glibc
import Host

/// Standard output and error.
enum Output {
    static func write(_ text: String) { writeAll(Array(text.utf8), to: STDOUT_FILENO) }

    /// Says what is going on.
    static func progress(_ text: String) { writeAll(Array("\(text)\n".utf8), to: STDERR_FILENO) }
}

/// A measurement that could not be made, in words for a person.
struct BenchFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }
}
