// All keys of a file, and the tables that a person gives names to.

/// The keys in the order of the file, and tables with a name of the user's behind them.
package struct KeyTable<Settings: Configurable>: Sendable {
    package let keys: [Key<Settings>]
    let named: NamedTables<Settings>
    private let positions: [String: Int]

    package init(_ named: NamedTables<Settings>) {
        keys = Settings.keys
        self.named = named
        positions = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1.path, $0) })
    }

    /// The key at a dotted path, if there is one.
    package subscript(path: String) -> Key<Settings>? { positions[path].map { keys[$0] } }

    /// The names of the sections, in the order of the file.
    var sections: [String] {
        keys.map(\.section).reduce(into: []) { names, name in
            if !name.isEmpty, names.last != name { names.append(name) }
        }
    }
}

/// Tables that a person gives names to, as `[stream.weather]`: each makes an element of a list.
package struct NamedTables<Settings: Sendable>: Sendable {
    /// `stream` of `[stream.weather]`.
    let section: String
    /// The table that messages and documents show.
    let example: String
    /// What it is for; a line each.
    let about: [String]
    let allowedName: String
    /// As many as there may be.
    let limit: Int
    /// Why a name is none; nil where it is one.
    let problem: @Sendable (String) -> String?
    let names: @Sendable (Settings) -> [String]
    let add: @Sendable (String, inout Settings) -> Void
    /// Of the table of a name.
    let keys: @Sendable (String) -> [Key<Settings>]
    /// Of any table: names and sentences, and the defaults of the example.
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
                key.within("\(section).\(table)") { settings in
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
