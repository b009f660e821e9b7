// What the bench prints, and what it fails with.
import Glibc

/// Standard output and error.
enum Output {
    static func write(_ text: String) { write(Array(text.utf8), to: STDOUT_FILENO) }

    /// Says what is going on.
    static func progress(_ text: String) { write(Array("\(text)\n".utf8), to: STDERR_FILENO) }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// A measurement that could not be made, in words for a person.
struct BenchFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }
}
