// The settings of the Bluetooth proxy.
package import Configuration
package import Host

/// `[proxy]`: the gateway as a Bluetooth proxy for Home Assistant.
package struct ProxySettings: Configurable {
    package var isEnabled = false
    /// The file with the key; never nil if enabled.
    package var keyFile: String?
    package var listen = HostPort(host: "::", port: 6053)
    /// nil for one made from the device's id.
    package var name: String?
    /// nil for the name.
    package var area: String?

    package init() {}

    package static var keys: [Key<Self>] {
        Key("esphome", \.isEnabled, .boolean)
            .says("Pass advertisements to Home Assistant, as an ESPHome Bluetooth proxy does.")
        Key("key_file", optional: \.keyFile, .path(), example: "/etc/waypost/proxy.key")
            .says("File with the key that clients need; `waypost config proxy-key` makes one.")
        Key("listen", \.listen, .hostPort)
            .says("Address and port for clients; [::] stands for all addresses, also IPv4 ones.")
        Key("name", optional: \.name, .proxyName, example: "waypost-roof")
            .says("Name in Home Assistant and in mDNS; else waypost- and six digits.")
        Key("area", optional: \.area, .area, example: "Roof")
            .says("Area that Home Assistant suggests for the device; else the name.")
    }

    package var violations: [Violation] {
        var violations: [Violation] = []
        if isEnabled, keyFile == nil {
            violations.append(
                Violation(
                    ["esphome", "key_file"],
                    "proxy.key_file is not set, and there is no proxy without encryption",
                    allowed: "true with a key_file; `sudo waypost config proxy-key` makes one"
                )
            )
        }
        if !TCPListener.isNumeric(listen) {
            violations.append(
                Violation(
                    ["listen"],
                    "\(listen) is not a numeric address",
                    allowed: "an IP address and a port, as [::]:6053 or 192.168.1.5:6053"
                )
            )
        }
        return violations
    }
}

extension ValueFormat where Value == String {
    /// A host name's label, as ESPHome names its devices.
    fileprivate static let proxyName = ValueFormat.text(
        "1 to 31 of the characters a-z 0-9 -, a letter or digit first and last",
        no: "name",
        parse: { text in
            let bytes = text.utf8
            let isSafe = bytes.allSatisfy { (97...122).contains($0) || $0.isDigit || $0 == 45 }
            guard isSafe, (1...31).contains(bytes.count), bytes.first != 45, bytes.last != 45 else {
                return nil
            }
            return text
        },
        written: { $0 }
    )

    fileprivate static let area = ValueFormat.text(
        "a text of 1 to 64 characters",
        no: "area",
        parse: { text in
            (1...64).contains(text.unicodeScalars.count) && printable(text, limit: 64) == text
                ? text : nil
        },
        written: { $0 }
    )
}
