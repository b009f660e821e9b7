// Puts file and environment together over the defaults and gathers every problem on the way.
internal import Glibc
internal import Host

/// A right configuration, and where each of its values came from.
package struct LoadedConfiguration: Sendable, Equatable {
    package var values: Configuration
    /// By key; a key that is not here has its default.
    package var origins: [String: Origin]
    package var warnings: [ConfigurationProblem]

    /// Where a value came from.
    package enum Origin: Sendable, Equatable, CustomStringConvertible {
        case file(String, line: Int)
        /// The variable's name.
        case environment(String)

        /// As messages name it: `file:line`, or the variable's name.
        package var description: String {
            switch self {
            case .file(let path, let line): "\(path):\(line)"
            case .environment(let name): name
            }
        }
    }
}

extension Configuration {
    /// The most that a file may hold: the full commented one takes about 8 kB.
    static let largestFile = 65_536

    /// Reads and checks a file together with the environment.
    ///
    /// Throws all errors at once.
    package static func load(
        path: String,
        environment: [String: String]
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: largestFile, wait: true)
        } catch {
            throw ConfigurationErrors([unreadable(path, error)])
        }
        var loaded = try check(file.bytes, file: path, environment: environment)
        // Keys of the environment are none of the file's.
        if case .environment = loaded.origins["beacons.bindkeys"] { return loaded }
        if !loaded.values.beacons.bindkeys.isEmpty, file.mode & 0o007 != 0 {
            let name = printable(path, limit: 4096)
            loaded.warnings.append(
                ConfigurationProblem(
                    place: name,
                    message: "holds beacons.bindkeys, and every user may read it; "
                        + "`sudo chown root:waypost \(name)`, `sudo chmod 640 \(name)`"
                )
            )
        }
        return loaded
    }

    /// Checks the bytes of a file together with the environment; `file` is its name in messages.
    ///
    /// Throws all errors at once.
    package static func check(
        _ bytes: [UInt8],
        file: String,
        environment: [String: String]
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        var reader = ConfigurationReader(file: printable(file, limit: 4096))
        reader.read(bytes)
        reader.read(environment)
        reader.checkRules()
        reader.advise()
        let problems = reader.problems
        guard problems.isEmpty else {
            throw ConfigurationErrors(problems, warnings: reader.warnings)
        }
        return LoadedConfiguration(
            values: reader.configuration,
            origins: reader.origins,
            warnings: reader.warnings
        )
    }

    private static func unreadable(_ path: String, _ error: SystemError) -> ConfigurationProblem {
        let message =
            switch error.code {
            case ENOENT:
                "there is no such file; `waypost config default > \(path)` makes one"
            case EACCES:
                "cannot be read: \(error.reason); run as root or as a member of the group waypost"
            default: "cannot be read: \(error.reason)"
            }
        return ConfigurationProblem(place: path, message: message)
    }
}

/// The state of one reading.
struct ConfigurationReader {
    let file: String
    let table = KeyTable.all
    var configuration = Configuration()
    var origins: [String: LoadedConfiguration.Origin] = [:]
    var warnings: [ConfigurationProblem] = []
    /// Each with its line in the file; those of the environment come after it.
    private var found: [(line: Int, problem: ConfigurationProblem)] = []
    /// Keys with a refused value: rules that need them are not checked.
    var refused: Set<String> = []

    init(file: String) {
        self.file = file
    }

    /// What is wrong, in the order of the file, then the environment.
    var problems: [ConfigurationProblem] {
        let order = found.indices.sorted { (found[$0].line, $0) < (found[$1].line, $1) }
        return order.map { found[$0].problem }
    }

    // MARK: File

    mutating func read(_ bytes: [UInt8]) {
        if bytes.count > Configuration.largestFile {
            let message = "is larger than \(Configuration.largestFile / 1024) KiB"
            found.append((0, ConfigurationProblem(place: file, message: message)))
            return
        }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            let message = "is saved as UTF-16; save it as UTF-8"
            found.append((0, ConfigurationProblem(place: file, message: message)))
            return
        }
        do {
            let document = try TOMLDocument(bytes)
            apply(document.entries())
        } catch {
            found.append((error.line, syntaxProblem(error)))
        }
    }

    private func syntaxProblem(_ error: TOMLError) -> ConfigurationProblem {
        let unquoted = ["parsing value:", "parsing boolean:", "parsing decimal", "parsing float"]
        let hint = unquoted.contains { error.description.contains($0) }
        return ConfigurationProblem(
            place: "\(file):\(error.line):\(error.column)",
            message: "no valid TOML: \(printable(error.description, limit: 300))"
                + (hint ? " (a text stands in double quotes)" : "")
        )
    }

    private mutating func apply(_ entries: [TOMLEntry]) {
        var skipped: [String] = []
        for entry in entries where !skipped.contains(where: { entry.path.hasPrefix($0) }) {
            let place = LoadedConfiguration.Origin.file(file, line: entry.line)
            let known: Bool
            if entry.path == UserStream.section || entry.path.hasPrefix(UserStream.section + ".") {
                known = applyUserStream(entry, at: place)
            } else if let key = table[entry.path] {
                known = set(key, to: entry.value, from: place)
            } else if let key = freeTable(holding: entry) {
                known = set(key, to: .member(entry.key, entry.value), from: place, at: entry.path)
            } else {
                known = isSection(entry, at: place)
            }
            // What a wrong table holds is wrong for the same reason.
            if !known { skipped.append(entry.path + ".") }
        }
    }

    private func freeTable(holding entry: TOMLEntry) -> ConfigurationKey? {
        table.keys.first { $0.isTable && entry.path.hasPrefix($0.path + ".") }
    }

    private mutating func isSection(
        _ entry: TOMLEntry,
        at place: LoadedConfiguration.Origin
    ) -> Bool {
        let isTable = entry.value == .table
        let path = printable(entry.path)
        if table.sections.contains(entry.path) {
            if isTable { return true }
            add(place, path, "found \(entry.value.foundKind)", allowed: "a section")
            return false
        }
        let paths = table.keys.map(\.path)
        let sections = table.sections + [UserStream.section]
        let words = isTable && !path.contains(".") ? sections : paths
        let hint =
            hint(path, entry) ?? nearest(to: path, among: words)
            .map { "; did you mean \($0)?" } ?? ""
        add(place, path, (isTable ? "unknown section" : "unknown key") + hint, allowed: nil)
        return false
    }

    /// `[streams.weather]`, where `[stream.weather]` is meant.
    private func hint(_ path: String, _ entry: TOMLEntry) -> String? {
        guard path.hasPrefix("streams."), UserStream.problem(withName: entry.key) == nil,
            entry.value == .table
        else { return nil }
        return "; did you mean [stream.\(entry.key)]?"
    }

    // MARK: Environment

    mutating func read(_ environment: [String: String]) {
        for key in table.keys {
            guard let value = environment[key.variable] else { continue }
            if value.isEmpty {
                warn(key.variable, "is empty, so it overrides nothing")
            } else {
                _ = set(key, to: .unquoted(value), from: .environment(key.variable))
            }
        }
        for name in environment.keys.sorted() where name.hasPrefix("WAYPOST_") {
            if !setUserStream(name, environment[name] ?? "") { checkIsKnown(name) }
        }
        readSystemdDirectory("STATE_DIRECTORY", "state_directory", environment)
        readSystemdDirectory("RUNTIME_DIRECTORY", "runtime_directory", environment)
    }

    private mutating func checkIsKnown(_ name: String) {
        let variables = table.keys.map(\.variable)
        let isOther = name == "WAYPOST_CONFIG" || name.hasPrefix("WAYPOST_TEST_")
        guard !isOther, !variables.contains(name) else { return }
        let hint = nearest(to: name, among: variables).map { "; did you mean \($0)?" } ?? ""
        warn(printable(name), "names no key of the configuration" + hint)
    }

    /// systemd.exec(5): directories of a unit, separated by colons.
    private mutating func readSystemdDirectory(
        _ variable: String,
        _ path: String,
        _ environment: [String: String]
    ) {
        guard let first = environment[variable]?.split(separator: ":").first,
            let key = table[path]
        else { return }
        _ = set(key, to: .unquoted(String(first)), from: .environment(variable))
    }

    // MARK: Both

    /// Sets a key, or says why not; `path` is that of a table's member.
    private mutating func set(
        _ key: ConfigurationKey,
        to value: Literal,
        from origin: LoadedConfiguration.Origin,
        at path: String? = nil
    ) -> Bool {
        if let mismatch = key.set(value, &configuration) {
            refused.insert(key.path)
            // A variable names its key itself.
            let isFile = if case .file = origin { true } else { false }
            let name = isFile ? printable(path ?? key.path) : ""
            add(origin, name, mismatch.message, allowed: key.allowed)
            return false
        }
        refused.remove(key.path)
        // A table stands where it begins.
        if path == nil { origins[key.path] = origin }
        return true
    }

    mutating func checkRules() {
        for rule in Rule.all where refused.isDisjoint(with: rule.keys) {
            guard let (message, allowed) = rule.broken(configuration) else { continue }
            let place = rule.keys.first { origins[$0] != nil }
            guard let place, let origin = origins[place] else { continue }
            let isFile = if case .file = origin { true } else { false }
            add(origin, isFile ? place : "", message, allowed: allowed)
        }
        checkUserStreams()
    }

    /// Warns of what is right but will not do what a person may expect.
    mutating func advise() {
        if configuration.upload.target == nil, found.isEmpty {
            let waits = configuration.upload.required
            warn(
                file,
                "upload.endpoint is not set: nothing is uploaded"
                    + (waits ? " and nothing collected; set it, or upload.required = false" : "")
            )
        }
    }

    mutating func add(
        _ origin: LoadedConfiguration.Origin,
        _ key: String,
        _ message: String,
        allowed: String?
    ) {
        let line = if case .file(_, let line) = origin { line } else { Int.max }
        let problem = ConfigurationProblem(
            place: origin.description,
            key: key,
            message: message,
            allowed: allowed
        )
        found.append((line, problem))
    }

    mutating func warn(_ place: String, _ message: String) {
        warnings.append(ConfigurationProblem(place: place, message: message))
    }
}
