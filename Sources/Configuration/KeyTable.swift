// The table of all keys of a file, and the tables that users name.

/// All keys in file order, followed by the tables that users name.
package struct KeyTable<Settings: Configurable>: Sendable {
    package let keys: [Key<Settings>]
    /// Nil if the file has no tables that users name.
    let named: NamedTables<Settings>?
    private let positions: [String: Int]

    package init(_ named: NamedTables<Settings>? = nil) {
        keys = Settings.keys
        self.named = named
        positions = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1.path, $0) })
    }

    /// Returns the key at a dotted path, if there is one.
    package subscript(path: String) -> Key<Settings>? { positions[path].map { keys[$0] } }

    /// The names of the sections, in the order of the file.
    var sections: [String] {
        keys.map(\.section).reduce(into: []) { names, name in
            if !name.isEmpty, names.last != name { names.append(name) }
        }
    }

    /// Returns the value of each key that has one, as a file would have it.
    package func literals(_ settings: Settings) -> [(path: String, value: Literal)] {
        let lines = keys.compactMap { key in key.written(settings).map { "\(key.path) = \($0)\n" } }
        let entries = try? TOMLDocument(Array(lines.joined().utf8)).entries()
        return (entries ?? []).map { ($0.path, $0.value) }
    }
}

/// Tables that users name, such as `[stream.weather]`; each adds an element to a list.
package struct NamedTables<Settings: Sendable>: Sendable {
    /// The section, `stream` of `[stream.weather]`.
    let section: String
    /// The table name that messages and documents show.
    let example: String
    /// Its description, one line per element.
    let about: [String]
    let allowedName: String
    /// The most tables allowed.
    let limit: Int
    /// Returns why a name is not valid; nil if it is.
    let problem: @Sendable (String) -> String?
    let names: @Sendable (Settings) -> [String]
    let add: @Sendable (String, inout Settings) -> Void
    /// Returns the keys of the table with a name.
    let keys: @Sendable (String) -> [Key<Settings>]
    /// The keys of any table for documents, with the defaults of the example.
    let described: [(key: Key<Settings>, defaultText: String)]

    package init<Element: Sendable>(
        _ section: String,
        _ list: any WritableKeyPath<Settings, [Element]> & Sendable,
        named name: any KeyPath<Element, String> & Sendable,
        keys: [Key<Element>],
        example: String,
        about: [String],
        allowedName: String,
        limit: Int,
        problem: @escaping @Sendable (String) -> String?,
        make: @escaping @Sendable (String) -> Element
    ) {
        let keysOf: @Sendable (String) -> [Key<Settings>] = { table in
            keys.map { key in
                Key(key, within: "\(section).\(table)") { settings in
                    settings[keyPath: list].first { $0[keyPath: name] == table }
                } change: { change, settings in
                    let place = settings[keyPath: list].firstIndex { $0[keyPath: name] == table }
                    if let place { change(&settings[keyPath: list][place]) }
                }
            }
        }
        (self.section, self.example, self.about) = (section, example, about)
        (self.allowedName, self.limit, self.problem) = (allowedName, limit, problem)
        names = { $0[keyPath: list].map { $0[keyPath: name] } }
        add = { $1[keyPath: list].append(make($0)) }
        self.keys = keysOf
        let element = make(example)
        described = zip(keysOf(example), keys).map { ($0, $1.written(element) ?? "") }
    }
}
