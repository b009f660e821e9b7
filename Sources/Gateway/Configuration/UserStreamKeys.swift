// The keys of a table `[stream.NAME]`, and how such tables are read and written.

/// One key of a stream of the user.
struct UserStreamKey: Sendable {
    let name: String
    let summary: String
    let allowed: String
    let set: @Sendable (Literal, inout UserStream) -> Mismatch?
    /// Its value as TOML.
    let written: @Sendable (UserStream) -> String

    private init<Value>(
        _ name: String,
        _ property: any WritableKeyPath<UserStream, Value> & Sendable,
        _ format: ValueFormat<Value>,
        _ summary: String
    ) {
        self.name = name
        self.summary = summary
        allowed = format.allowed
        set = { literal, stream in
            switch format.read(literal) {
            case .failure(let mismatch): return mismatch
            case .success(let value): stream[keyPath: property] = value
            }
            return nil
        }
        written = { format.written($0[keyPath: property]) }
    }

    static let all = [
        UserStreamKey(
            "wire",
            \.wire,
            .wireName,
            "Its name at the server; without this key the name of the table."
        ),
        UserStreamKey(
            "max_rate",
            \.maxRate,
            .number(0...100_000, above: true, unit: "records a second"),
            "Records a second that are taken, of all programs together."
        ),
        UserStreamKey(
            "max_record_bytes",
            \.maxRecordBytes,
            .size(16...65_536),
            "The longest JSON object that is taken."
        ),
    ]

    /// `WAYPOST_STREAM_WEATHER_MAX_RATE` is `max_rate` of `weather`; nil for other variables.
    static func named(by variable: String) -> (stream: String, key: UserStreamKey)? {
        let prefix = "WAYPOST_STREAM_"
        guard variable.hasPrefix(prefix) else { return nil }
        let rest = variable.dropFirst(prefix.count)
        for key in all {
            let suffix = "_" + key.name.uppercased()
            if rest.hasSuffix(suffix) {
                return (rest.dropLast(suffix.count).lowercased(), key)
            }
        }
        return nil
    }
}

extension ValueFormat where Value == String {
    /// A name on the wire, which a receiver may make a folder of; any name of a table is one.
    fileprivate static let wireName = ValueFormat.text(
        "1 to 64 of the characters A-Z a-z 0-9 _ -, no - first",
        parse: { text in
            let bytes = text.utf8
            let safe = bytes.allSatisfy { $0.isLetter || $0.isDigit || $0 == 95 || $0 == 45 }
            guard (1...64).contains(bytes.count), bytes.first != 45, safe else {
                return .failure(Mismatch("\"\(printable(text))\" is no name for the wire"))
            }
            return .success(text)
        },
        written: { $0 }
    )
}

extension UserStream {
    /// What stands in the file that `waypost config default` prints.
    static var example: String {
        var text = """

            # Streams of your own: `waypost put weather` takes a JSON object a line from any program.
            # A table declares one; its name: \(allowedName).
            #[stream.weather]

            """
        for key in UserStreamKey.all {
            let value = key.written(UserStream(name: "weather"))
            text += "\n# \(key.summary)\n# Allowed: \(key.allowed)\n#\(key.name) = \(value)\n"
        }
        return text
    }
}
