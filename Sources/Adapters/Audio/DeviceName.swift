// Checks which capture device names may reach libasound.
import Host

/// The rule for one name in `audio.device` (waypost.toml(5), SOUND DEVICES).
///
/// libasound evaluates a name like a program: `file:FILE='|CMD'` runs a command and `tee:` writes a
/// file. A configuration may come from an untrusted card or stick, so only names of cards or of
/// entries in the machine's own `asound.conf` are allowed.
enum DeviceName {
    /// A short form for messages; waypost.toml(5) has the full rule.
    static let allowed =
        "usb-PORT or hw:CARD=NAME (see `waypost devices`), or a name from asound.conf"

    private static let prefix = "plug:"

    static func isAllowed(_ name: String) -> Bool {
        guard name.utf8.count <= 128 else { return false }
        return isPlain(slave(of: name) ?? name)
    }

    /// Returns the name after `plug:`, unquoted; nil for a name without `plug:`.
    static func slave(of name: String) -> String? {
        guard name.hasPrefix(prefix) else { return nil }
        let slave = name.dropFirst(prefix.count)
        let isQuoted = slave.utf8.count > 1 && slave.hasPrefix("'") && slave.hasSuffix("'")
        return String(isQuoted ? slave.dropFirst().dropLast() : slave)
    }

    /// Quotes a name for libasound; without quotes, commas in it would end it.
    static func plugged(_ slave: String) -> String { "\(prefix)'\(slave)'" }

    private static func isPlain(_ name: String) -> Bool {
        if name.hasPrefix("usb-") {
            return name.utf8.count > 4 && consists(name.dropFirst(4), of: "._-")
        }
        guard let colon = name.firstIndex(of: ":") else { return consists(name[...], of: "_-") }
        return ["hw", "plughw", "dsnoop", "sysdefault"].contains(name[..<colon])
            && areArguments(name[name.index(after: colon)...])
    }

    /// Accepts `0`, `Mic,0`, `CARD=Mic,DEV=0`: a card, then the numbers of a device and a
    /// subdevice.
    private static func areArguments(_ text: Substring) -> Bool {
        let values = text.split(separator: ",", omittingEmptySubsequences: false)
        guard values.count <= 3 else { return false }
        return zip(values, ["CARD=", "DEV=", "SUBDEV="]).enumerated().allSatisfy { place, pair in
            let (text, key) = pair
            let value = text.hasPrefix(key) ? text.dropFirst(key.count) : text
            guard place > 0 else { return consists(value, of: "_-") }
            return (1...4).contains(value.utf8.count) && value.utf8.allSatisfy(\.isDigit)
        }
    }

    /// Accepts at least one letter or digit, and otherwise only these and `others`.
    private static func consists(_ text: Substring, of others: String) -> Bool {
        text.utf8.contains { $0.isLetter || $0.isDigit }
            && text.utf8.allSatisfy { $0.isLetter || $0.isDigit || others.utf8.contains($0) }
    }
}
