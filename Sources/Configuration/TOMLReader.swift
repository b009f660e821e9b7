// Merges file and environment over the defaults and collects every problem.
import Host

/// Valid settings with the origin of each value.
package struct Loaded<Settings: Configurable>: Sendable, Equatable {
    package var values: Settings
    /// The origins by key; a key without one has its default.
    package var origins: [String: Origin]
    package var warnings: [ConfigurationProblem]
}

/// The origin of a value.
package enum Origin: Sendable, Equatable, CustomStringConvertible {
    case file(String, line: Int)
    /// An environment variable, by name.
    case environment(String)

    /// The origin as messages name it: `file:line`, or the variable's name.
    package var description: String {
        switch self {
        case .file(let path, let line): "\(path):\(line)"
        case .environment(let name): name
        }
    }

    var isFile: Bool { if case .file = self { true } else { false } }
}

extension KeyTable {
    /// The largest file in bytes; the full commented one takes about 8 kB.
    package static var largestFile: Int { 65_536 }

    /// Returns true if a file sets any key besides `except`.
    ///
    /// A file with a syntax error counts as setting keys.
    package static func setsKeys(_ bytes: [UInt8], except key: String) -> Bool {
        let entries = try? TOMLDocument(bytes).entries()
        return entries?.contains { $0.value != .table && $0.path != key } ?? true
    }

    /// Finds the last part of `key` in a wrong section, where a line after that section's header
    /// ends up.
    package static func misplaced(
        _ key: String,
        in bytes: [UInt8]
    ) -> (path: String, line: Int)? {
        let name = key.split(separator: ".").last.map(String.init)
        let entries = (try? TOMLDocument(bytes).entries()) ?? []
        let found = entries.first { $0.key == name && $0.path != key && $0.value != .table }
        return found.map { (printable($0.path), $0.line) }
    }

    package static func isTOML(_ bytes: [UInt8]) -> Bool { fault(of: bytes) == nil }

    /// Returns the first syntax error of a file; nil if it is valid TOML.
    private static func fault(of bytes: [UInt8]) -> TOMLError? {
        do {
            _ = try TOMLDocument(bytes).entries()
            return nil
        } catch {
            return error
        }
    }

    /// Returns the valid values of a file over the defaults; after a syntax error, of the lines
    /// before it.
    package func rightParts(of bytes: [UInt8], environment: [String: String]) -> Settings {
        var text = bytes[...]
        if let fault = Self.fault(of: bytes) {
            let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
            text = bytes[..<lines[max(0, min(fault.line, lines.count) - 1)].startIndex]
        }
        var reader = TOMLReader(table: self, file: "")
        reader.read(Array(text))
        reader.read(environment)
        return reader.settings
    }

    /// Checks the bytes of a file together with the environment; `file` is its name in messages.
    ///
    /// Throws all errors at once. `isFromCard`: keys that only the device may set are errors.
    /// `layer` lies above the file, below the environment. `advice` returns a warning for valid
    /// settings that may surprise.
    package func read(
        _ bytes: [UInt8],
        file: String,
        environment: [String: String],
        isFromCard: Bool = false,
        layer: ConfigurationLayer? = nil,
        advice: (Settings) -> String?
    ) throws(ConfigurationErrors) -> Loaded<Settings> {
        var reader = TOMLReader(table: self, file: printable(file, limit: 4096))
        reader.isFromCard = isFromCard
        reader.read(bytes)
        if let layer { reader.read(layer) }
        reader.read(environment)
        reader.checkViolations()
        guard reader.found.isEmpty else {
            throw ConfigurationErrors(reader.problems, warnings: reader.warnings)
        }
        if let advice = advice(reader.settings) { reader.warn(reader.file, advice) }
        return Loaded(
            values: reader.settings,
            origins: reader.origins,
            warnings: reader.warnings
        )
    }
}

/// The state while one configuration is read.
private struct TOMLReader<Settings: Configurable> {
    let table: KeyTable<Settings>
    private(set) var file: String
    /// The file came from a card or a stick.
    var isFromCard = false
    var settings = Settings()
    var origins: [String: Origin] = [:]
    var warnings: [ConfigurationProblem] = []
    /// The problems with their lines; those of the environment sort last.
    var found: [(line: Int, problem: ConfigurationProblem)] = []
    /// The keys of tables that the file names.
    private var named: [Key<Settings>] = []
    /// Keys with a refused value; rules that need them are not checked.
    private var refused: Set<String> = []
    /// While a layer is read: the keys below it that stay.
    private var layer: Set<String>?

    init(table: KeyTable<Settings>, file: String) {
        (self.table, self.file) = (table, file)
    }

    /// The problems in file order, then those of the environment.
    var problems: [ConfigurationProblem] {
        let order = found.indices.sorted { (found[$0].line, $0) < (found[$1].line, $1) }
        return order.map { found[$0].problem }
    }

    // MARK: File

    mutating func read(_ bytes: [UInt8]) {
        if bytes.count > KeyTable<Settings>.largestFile {
            let message = "is larger than \(KeyTable<Settings>.largestFile / 1024) KiB"
            return found.append((0, ConfigurationProblem(place: file, message: message)))
        }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            let message = "is saved as UTF-16; save it as UTF-8"
            return found.append((0, ConfigurationProblem(place: file, message: message)))
        }
        do {
            apply(try TOMLDocument(bytes).entries())
        } catch {
            refuse(bytes, error)
        }
    }

    /// Reads settings from the server.
    mutating func read(_ above: ConfigurationLayer) {
        let below = file
        layer = above.isBelowFile ? Set(origins.keys) : []
        file = above.name
        read(Array(above.text.utf8))
        (file, layer) = (below, nil)
    }

    /// Reports a syntax error, and all lines with a usual mistake.
    private mutating func refuse(_ bytes: [UInt8], _ error: TOMLError) {
        for mistake in TOMLDiagnostic.mistakes(in: bytes, error) {
            let column = mistake.column.map { ":\($0)" } ?? ""
            let place = "\(file):\(mistake.line)\(column)"
            found.append(
                (mistake.line, ConfigurationProblem(place: place, message: mistake.message))
            )
        }
    }

    private mutating func apply(_ entries: [TOMLEntry]) {
        var skipped: [String] = []
        for entry in entries where !skipped.contains(where: { entry.path.hasPrefix($0) }) {
            // The members of a refused table would be refused for the same reason.
            if !receive(entry, at: .file(file, line: entry.line)) {
                skipped.append(entry.path + ".")
            }
        }
    }

    private mutating func receive(_ entry: TOMLEntry, at place: Origin) -> Bool {
        if let key = table[entry.path] ?? named.first(where: { $0.path == entry.path }) {
            return set(key, to: entry.value, from: place)
        }
        let free = table.keys.first { $0.count != nil && entry.path.hasPrefix($0.path + ".") }
        if let free {
            return set(free, to: .member(entry.key, entry.value), from: place, at: entry.path)
        }
        if let tables = table.named, entry.path.hasPrefix(tables.section + ".") {
            return readNamed(entry, of: tables, at: place)
        }
        return isSection(entry, at: place)
    }

    /// Accepts a section; reports an unknown key or section.
    private mutating func isSection(_ entry: TOMLEntry, at place: Origin) -> Bool {
        let isTable = entry.value == .table
        let path = printable(entry.path)
        let section = table.named?.section
        if entry.path == section || table.sections.contains(entry.path) {
            if isTable { return true }
            let allowed =
                entry.path == section ? "a table for each \(path): [\(path).NAME]" : "a section"
            add(place, path, "found \(entry.value.foundKind)", allowed: allowed)
            return false
        }
        let sections = table.sections + (section.map { [$0] } ?? [])
        let names = isTable && !path.contains(".") ? sections : table.keys.map(\.path)
        let near = namedTable(meantBy: entry) ?? nearest(to: path, among: names)
        add(place, path, (isTable ? "unknown section" : "unknown key") + hint(near), allowed: nil)
        return false
    }

    private func hint(_ near: String?) -> String { near.map { "; did you mean \($0)?" } ?? "" }

    // MARK: Tables that users name

    /// Returns `[stream.weather]` as a suggestion for `[streams.weather]`.
    private func namedTable(meantBy entry: TOMLEntry) -> String? {
        guard let tables = table.named, entry.path.hasPrefix(tables.section + "s."),
            entry.value == .table, tables.problem(entry.key) == nil
        else { return nil }
        return "[\(tables.section).\(entry.key)]"
    }

    /// Handles `[stream.weather]`, and anything below `stream` that is not a key.
    private mutating func readNamed(
        _ entry: TOMLEntry,
        of tables: NamedTables<Settings>,
        at place: Origin
    ) -> Bool {
        let path = printable(entry.path)
        if layer != nil, entry.value == .table {
            if origins[entry.path] != nil { return true }
            add(place, path, "cannot be declared by the server", allowed: nil)
            return false
        }
        let name = entry.path.dropFirst(tables.section.count + 1).prefix { $0 != "." }
        guard origins["\(tables.section).\(name)"] == nil else {
            let names = tables.described.map(\.key.name)
            let message = "unknown key" + hint(nearest(to: entry.key, among: names))
            add(place, path, message, allowed: names.joined(separator: ", "))
            return false
        }
        if let (message, allowed) = whyNoTable(entry, of: tables) {
            add(place, path, message, allowed: allowed)
            return false
        }
        tables.add(entry.key, &settings)
        named += tables.keys(entry.key)
        origins[entry.path] = place
        return true
    }

    private func whyNoTable(_ entry: TOMLEntry, of tables: NamedTables<Settings>)
        -> (message: String, allowed: String)?
    {
        let (section, limit) = (tables.section, tables.limit)
        guard entry.value == .table else {
            let allowed = "a table: [\(section).\(tables.example)] and its keys"
            return ("found \(entry.value.foundKind)", allowed)
        }
        if let problem = tables.problem(entry.key) { return (problem, tables.allowedName) }
        guard tables.names(settings).count < limit else {
            return ("is one \(section) too many", "up to \(limit) tables [\(section).NAME]")
        }
        return nil
    }

    // MARK: Environment

    mutating func read(_ environment: [String: String]) {
        let keys = table.keys + named
        for key in keys {
            guard let value = environment[key.variable] else { continue }
            if value.isEmpty {
                warn(key.variable, "is empty, so it overrides nothing")
            } else {
                _ = set(key, to: .unquoted(value), from: .environment(key.variable))
            }
        }
        let known = Set(keys.map(\.variable))
        for name in environment.keys.sorted() where name.hasPrefix("WAYPOST_") {
            let isOther =
                name.hasPrefix("WAYPOST_TEST_") || otherVariables.contains(name)
            if !isOther, !known.contains(name) { warn(printable(name), whyUnknown(name)) }
        }
        for key in keys {
            guard let variable = key.systemdVariable,
                let first = environment[variable]?.split(separator: ":").first
            else { continue }
            _ = set(key, to: .unquoted(String(first)), from: .environment(variable))
        }
    }

    private func whyUnknown(_ variable: String) -> String {
        for (key, _) in table.named?.described ?? [] {
            // `WAYPOST_STREAM_` and `_MAX_RATE`, with the table's name between them.
            guard let tables = table.named,
                let middle = key.variable.firstRange(ofPart: tables.example.uppercased())
            else { continue }
            let start = key.variable[..<middle.lowerBound]
            let end = key.variable[middle.upperBound...]
            guard variable.hasPrefix(start), variable.dropFirst(start.count).hasSuffix(end) else {
                continue
            }
            let name = variable.dropFirst(start.count).dropLast(end.count).lowercased()
            return "names a \(tables.section) that is not configured; "
                + "[\(tables.section).\(printable(name))] declares it"
        }
        let near = nearest(to: variable, among: table.keys.map(\.variable))
        return "is not a configuration key" + hint(near)
    }

    // MARK: Both

    /// Sets a key, or reports why not; `path` is that of a table's member.
    private mutating func set(
        _ key: Key<Settings>,
        to value: Literal,
        from origin: Origin,
        at path: String? = nil
    ) -> Bool {
        // A file from a card keeps what it sets.
        if let layer, key.remote != .nothing, layer.contains(key.path) { return true }
        let before = layer == nil ? nil : settings
        if let mismatch = key.set(value, &settings) {
            refused.insert(key.path)
            add(origin, printable(path ?? key.path), mismatch.message, allowed: key.allowed)
            return false
        }
        if let before, let refusal = key.refusalOfServer(from: before, to: settings) {
            refused.insert(key.path)
            add(origin, printable(path ?? key.path), refusal, allowed: nil)
            return false
        }
        if isFromCard, let refusal = key.refusalOnCard(settings) {
            refused.insert(key.path)
            add(origin, printable(path ?? key.path), refusal, allowed: nil)
            return false
        }
        refused.remove(key.path)
        // The origin of a table is its first line.
        if path == nil { origins[key.path] = origin }
        return true
    }

    mutating func checkViolations() {
        for violation in settings.violations where refused.isDisjoint(with: violation.keys) {
            guard let key = violation.keys.first(where: { origins[$0] != nil }),
                let origin = origins[key]
            else { continue }
            add(origin, violation.name ?? key, violation.message, allowed: violation.allowed)
        }
    }

    private mutating func add(
        _ origin: Origin,
        _ key: String,
        _ message: String,
        allowed: String?
    ) {
        let line = if case .file(_, let line) = origin { line } else { Int.max }
        let problem = ConfigurationProblem(
            place: origin.description,
            // The name of a variable already identifies the key.
            key: origin.isFile ? key : "",
            message: message,
            allowed: allowed
        )
        found.append((line, problem))
    }

    mutating func warn(_ place: String, _ message: String) {
        warnings.append(ConfigurationProblem(place: place, message: message))
    }
}

/// Variables that are not keys: the file's name, and those of a detector (`waypost listen`).
private let otherVariables: Set = [
    "WAYPOST_CONFIG", "WAYPOST_FILE", "WAYPOST_START", "WAYPOST_DURATION", "WAYPOST_DEVICE",
    "WAYPOST_LATITUDE", "WAYPOST_LONGITUDE",
]
