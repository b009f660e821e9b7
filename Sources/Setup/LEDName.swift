// The names that an LED may have.
import Host

/// The name of an LED in /sys/class/leds.
package enum LEDName {
    /// Returns whether a text can be an LED's name: not a path, nothing that needs quoting.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                byte.isLetter || byte.isDigit || ":_.-".utf8.contains(byte)
            }
    }
}
