// Reads the tables `[stream.NAME]` from the file, and what the environment overrides in them.

extension ConfigurationReader {
    /// Takes an entry of `stream` or below it; false when what it holds is wrong for the same reason.
    mutating func applyUserStream(
        _ entry: TOMLEntry,
        at place: LoadedConfiguration.Origin
    ) -> Bool {
        guard entry.path != UserStream.section else {
            if entry.value == .table { return true }
            let allowed = "a table for each stream: [stream.NAME]"
            add(place, entry.path, "found \(entry.value.foundKind)", allowed: allowed)
            return false
        }
        let rest = entry.path.dropFirst(UserStream.section.count + 1)
        let name = rest.prefix { $0 != "." }
        guard name.count < rest.count,
            let index = configuration.userStreams.firstIndex(where: { $0.name == name })
        else { return declare(entry, at: place) }
        return setKey(String(rest.dropFirst(name.count + 1)), of: index, entry, at: place)
    }

    /// `[stream.weather]` itself.
    private mutating func declare(
        _ entry: TOMLEntry,
        at place: LoadedConfiguration.Origin
    ) -> Bool {
        let path = printable(entry.path)
        guard entry.value == .table else {
            let message = "found \(entry.value.foundKind)"
            add(place, path, message, allowed: "a table: [stream.weather] and its keys")
            return false
        }
        if let problem = UserStream.problem(withName: entry.key) {
            add(place, path, problem, allowed: UserStream.allowedName)
            return false
        }
        guard configuration.userStreams.count < UserStream.limit else {
            let message = "is one stream too many"
            add(place, path, message, allowed: "up to \(UserStream.limit) tables [stream.NAME]")
            return false
        }
        configuration.userStreams.append(UserStream(name: entry.key))
        origins[entry.path] = place
        return true
    }

    private mutating func setKey(
        _ name: String,
        of index: Int,
        _ entry: TOMLEntry,
        at place: LoadedConfiguration.Origin
    ) -> Bool {
        guard let key = UserStreamKey.all.first(where: { $0.name == name }) else {
            let names = UserStreamKey.all.map(\.name)
            let hint = nearest(to: entry.key, among: names).map { "; did you mean \($0)?" } ?? ""
            let allowed = names.joined(separator: ", ")
            add(place, printable(entry.path), "unknown key" + hint, allowed: allowed)
            return false
        }
        return set(key, of: index, to: entry.value, from: place)
    }

    private mutating func set(
        _ key: UserStreamKey,
        of index: Int,
        to value: Literal,
        from origin: LoadedConfiguration.Origin
    ) -> Bool {
        let stream = configuration.userStreams[index].name
        let path = "\(UserStream.section).\(stream).\(key.name)"
        if let mismatch = key.set(value, &configuration.userStreams[index]) {
            refused.insert(path)
            let isFile = if case .file = origin { true } else { false }
            add(origin, isFile ? path : "", mismatch.message, allowed: key.allowed)
            return false
        }
        refused.remove(path)
        origins[path] = origin
        return true
    }

    /// Takes a variable that names a key of a stream; false for any other variable.
    mutating func setUserStream(_ variable: String, _ value: String) -> Bool {
        guard let (name, key) = UserStreamKey.named(by: variable) else { return false }
        guard let index = configuration.userStreams.firstIndex(where: { $0.name == name }) else {
            let message =
                "names no stream of the configuration; [stream.\(printable(name))] declares it"
            warn(printable(variable), message)
            return true
        }
        if value.isEmpty {
            warn(variable, "is empty, so it overrides nothing")
        } else {
            _ = set(key, of: index, to: .unquoted(value), from: .environment(variable))
        }
        return true
    }

    /// No two streams have one name on the wire.
    mutating func checkUserStreams() {
        var owners: [String: String] = [:]
        for key in table.keys where key.section == "streams" {
            if let name = key.written(configuration) { owners[name] = key.path }
        }
        for stream in configuration.userStreams {
            let path = "\(UserStream.section).\(stream.name)"
            guard let owner = owners.updateValue(path, forKey: tomlString(stream.wire)),
                let origin = origins["\(path).wire"] ?? origins[path]
            else { continue }
            let isFile = if case .file = origin { true } else { false }
            let message = "\"\(stream.wire)\" is the name on the wire of \(owner), too"
            add(origin, isFile ? path : "", message, allowed: "a name for each stream alone")
        }
    }
}
