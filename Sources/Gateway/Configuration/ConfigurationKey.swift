// The table of keys, from which check, show, default, environment and documentation all come.

/// One key of the configuration: what it is, what it may be, how it is set and written.
package struct ConfigurationKey: Sendable {
    /// Dotted: `upload.endpoint`.
    package let path: String
    /// One sentence on what it does.
    package let summary: String
    /// The values it takes, in words.
    package let allowed: String
    /// What a key without a default may look like, as TOML.
    package let example: String?
    /// A table whose keys are free, as addresses are.
    let isTable: Bool
    /// Sets it in a configuration, which is left as it was when the value is refused.
    let set: @Sendable (Literal, inout Configuration) -> Mismatch?
    /// Its value as TOML; nil where it has none.
    let written: @Sendable (Configuration) -> String?

    /// `upload` of `upload.endpoint`, empty for a key at the top of the file.
    package var section: String {
        path.contains(".") ? String(path.prefix { $0 != "." }) : ""
    }

    /// `endpoint` of `upload.endpoint`.
    package var name: String {
        section.isEmpty ? path : String(path.dropFirst(section.count + 1))
    }

    /// The variable that overrides it: `WAYPOST_UPLOAD_ENDPOINT`.
    package var variable: String {
        let name = path.map { $0 == "." ? "_" : $0 }
        return "WAYPOST_" + String(name).uppercased()
    }

    /// Its default as TOML; nil where it has none.
    package var defaultText: String? { written(Configuration()) }
}

/// All keys, section by section, in the order of the file.
package struct KeyTable: Sendable {
    package private(set) var keys: [ConfigurationKey] = []
    private var positions: [String: Int] = [:]

    package static let all = KeyTable()

    private init() {
        addGeneral()
        addUpload()
        addBeacons()
        addLocation()
        addAudio()
        addStorage()
        addStreams()
    }

    /// The key at a dotted path, if there is one.
    subscript(path: String) -> ConfigurationKey? {
        positions[path].map { keys[$0] }
    }

    /// The names of the sections, in the order of the file.
    var sections: [String] {
        var names: [String] = []
        for key in keys where !key.section.isEmpty && names.last != key.section {
            names.append(key.section)
        }
        return names
    }

    /// A key that always has a value.
    mutating func add<Value>(
        _ path: String,
        _ property: any WritableKeyPath<Configuration, Value> & Sendable,
        _ format: ValueFormat<Value>,
        _ summary: String
    ) {
        append(
            ConfigurationKey(
                path: path,
                summary: summary,
                allowed: format.allowed,
                example: nil,
                isTable: false,
                set: { literal, configuration in
                    switch format.read(literal) {
                    case .failure(let mismatch): return mismatch
                    case .success(let value): configuration[keyPath: property] = value
                    }
                    return nil
                },
                written: { format.written($0[keyPath: property]) }
            )
        )
    }

    /// A key that may be left out.
    mutating func add<Value>(
        _ path: String,
        optional property: any WritableKeyPath<Configuration, Value?> & Sendable,
        _ format: ValueFormat<Value>,
        example: String,
        _ summary: String
    ) {
        append(
            ConfigurationKey(
                path: path,
                summary: summary,
                allowed: format.allowed,
                example: example,
                isTable: false,
                set: { literal, configuration in
                    switch format.read(literal) {
                    case .failure(let mismatch): return mismatch
                    case .success(let value): configuration[keyPath: property] = value
                    }
                    return nil
                },
                written: { $0[keyPath: property].map(format.written) }
            )
        )
    }

    /// A table whose keys are free: each member is added to what is there, the environment replaces all.
    mutating func add<Name: Hashable & Sendable, Value>(
        _ path: String,
        table property: any WritableKeyPath<Configuration, [Name: Value]> & Sendable,
        _ format: ValueFormat<[Name: Value]>,
        _ summary: String
    ) {
        append(
            ConfigurationKey(
                path: path,
                summary: summary,
                allowed: format.allowed,
                example: nil,
                isTable: true,
                set: { literal, configuration in
                    let isMember = if case .member = literal { true } else { false }
                    if !isMember { configuration[keyPath: property] = [:] }
                    if literal == .table { return nil }
                    switch format.read(literal) {
                    case .failure(let mismatch): return mismatch
                    case .success(let members):
                        configuration[keyPath: property].merge(members) { _, new in new }
                    }
                    return nil
                },
                written: { format.written($0[keyPath: property]) }
            )
        )
    }

    private mutating func append(_ key: ConfigurationKey) {
        positions[key.path] = keys.count
        keys.append(key)
    }
}
