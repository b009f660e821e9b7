// Names that are safe in paths.
import Host

/// Returns whether a name is safe as a directory name: letters, digits, `.`, `_`, `-`.
package func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 64 && !text.hasPrefix(".")
        && text.utf8.allSatisfy { isPlain($0) || $0 == 46 }
}

/// Returns whether a byte is an ASCII letter, a digit, `_` or `-`.
package func isPlain(_ byte: UInt8) -> Bool {
    byte.isLetter || byte.isDigit || byte == 45 || byte == 95
}
