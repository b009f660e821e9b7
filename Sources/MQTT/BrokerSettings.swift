// The keys of `[mqtt]` that say which broker to connect to, and how.
package import Configuration
package import Host
package import HTTP

/// `[mqtt]`: the broker of messages in and out.
package struct BrokerSettings: Configurable {
    package var url: String?
    package var allowsPlaintext = false
    package var username: String?
    package var passwordFile: String?
    package var caFile: String?
    /// Nil: the device id.
    package var clientID: String?
    /// A card or a stick named the broker, so a password is sent only if its file names it, too.
    package var isFromCard = false

    package init() {}

    /// The names of its keys in messages.
    package static let names = SettingNames(
        endpoint: "mqtt.url",
        certificates: "mqtt.ca_file",
        scheme: "mqtts"
    )

    /// The broker; nil if none is set.
    package var endpoint: Endpoint? { url.flatMap { try? Endpoint.parse($0, .mqtt).get() } }

    package static var keys: [Key<Self>] {
        Key("url", optional: \.url, .broker, example: "mqtts://broker.example.org")
            .says("MQTT broker: mqtts:// with TLS on port 8883, mqtt:// without on port 1883.")
        Key("allow_plaintext", \.allowsPlaintext, .boolean)
            .says("Permit a password over mqtt://: anyone on the way can then read it.")
        Key("username", optional: \.username, .username, example: "waypost")
            .says("User name at the broker.")
        Key("password_file", optional: \.passwordFile, .path(), example: "/etc/waypost/mqtt")
            .says("File of mode 0600 with the password for the broker.")
            .onCard(
                "take the line out; on the device, sudo systemctl edit waypost, and set "
                    + "Environment=WAYPOST_MQTT_PASSWORD_FILE=/etc/waypost/mqtt there"
            )
        Key("ca_file", optional: \.caFile, .path(), example: "/etc/waypost/ca.pem")
            .says("Extra certificate authorities to trust, in PEM.")
            .onCard(
                "take the line out, and add the authority on the device: update-ca-certificates(8)"
            )
        Key("client_id", optional: \.clientID, .clientID, example: "waypost-1")
            .says("Client id at the broker, unique there; without this key the device id.")
    }

    package var violations: [Violation] {
        guard passwordFile != nil, !allowsPlaintext, let endpoint, !endpoint.isEncrypted,
            !endpoint.isLoopback
        else { return [] }
        return [
            Violation(
                ["url", "password_file", "allow_plaintext"],
                "mqtt:// would show the password to anyone on the way",
                allowed:
                    "mqtts://, mqtt:// to loopback, or any mqtt:// with mqtt.allow_plaintext = true"
            )
        ]
    }

    private static let passwordLimit = 4096

    /// Reads the password; nil if none is set.
    ///
    /// Throws a `Failure` with the file, the problem and the remedy.
    package func password(_ environment: [String: String]) throws(Failure) -> [UInt8]? {
        guard let passwordFile else { return nil }
        let file = SecretFile(
            name: "password file",
            secret: "password for the broker",
            key: "mqtt.password_file",
            credential: "waypost.mqtt",
            limit: Self.passwordLimit,
            advice: "put the password there with mode 0600"
        )
        var (bytes, path) = try file.read(
            passwordFile,
            environment,
            for: url,
            onlyBound: isFromCard
        )
        while bytes.last == 10 || bytes.last == 13 { bytes.removeLast() }
        guard (1...Self.passwordLimit).contains(bytes.count) else {
            throw Failure(
                "password file \(path): is empty, or larger than \(Self.passwordLimit) bytes"
            )
        }
        return bytes
    }
}

extension ValueFormat where Value == String {
    fileprivate static let broker = ValueFormat.text(
        "mqtts://host or mqtt://host, perhaps with a port",
        isDiscreet: true,
        parse: { text in
            Endpoint.parse(text, .mqtt).flatMap { _ in
                let place = text.split(separator: "/", omittingEmptySubsequences: false)
                let hasPath = place.count > 4 || place.count == 4 && !place[3].isEmpty
                return hasPath || text.utf8.contains(UInt8(ascii: "?"))
                    ? .failure(MismatchError("holds more than a host and a port")) : .success(text)
            }
        },
        written: { $0 }
    )

    fileprivate static let username = ValueFormat.text(
        "1 to 256 bytes without control characters",
        no: "user name",
        parse: { text in
            let isPlain = !text.unicodeScalars.contains(where: \.isInvisible)
            return (1...256).contains(text.utf8.count) && isPlain ? text : nil
        },
        written: { $0 }
    )

    fileprivate static let clientID = ValueFormat.text(
        "1 to 100 printable ASCII characters, no space",
        no: "client id",
        parse: { text in
            let isSafe = text.utf8.allSatisfy { (33...126).contains($0) }
            return (1...100).contains(text.utf8.count) && isSafe ? text : nil
        },
        written: { $0 }
    )
}
