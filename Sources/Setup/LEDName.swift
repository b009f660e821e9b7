// Validates LED names, for the configuration and for the LED program.
import Host

/// Checks names of LEDs in /sys/class/leds, so that a name is never a path.
package enum LEDName {
    /// Returns whether a text can be an LED's name: not a path, nothing that needs quoting.
    @Sendable package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                byte.isLetter || byte.isDigit || ":_.-".utf8.contains(byte)
            }
    }
}
