// The configuration as TOML: the full commented file, and the effective values.

extension Configuration {
    /// The file that `waypost config default` prints: every key, its default and what it may be.
    package static var defaultText: String {
        var text = """
            # Configuration of Waypost. Each key stands here with its default; a key without one is
            # commented out. Check a change with `waypost config check`.
            # The environment overrides a key: WAYPOST_UPLOAD_ENDPOINT is upload.endpoint.

            """
        write(into: &text) { key in
            let value = key.defaultText
            let line =
                value.map { "\(key.name) = \($0)" } ?? "#\(key.name) = \(key.example ?? "")"
            return "\n# \(key.summary)\n# Allowed: \(key.allowed)\n\(line)\n"
        }
        return text + UserStream.example
    }

    /// All keys in the order of the file under their sections.
    fileprivate static func write(
        into text: inout String,
        _ line: (ConfigurationKey) -> String
    ) {
        var section = ""
        for key in KeyTable.all.keys {
            if key.section != section {
                section = key.section
                text += "\n[\(section)]\n"
            }
            text += line(key)
        }
    }
}

extension LoadedConfiguration {
    /// What `waypost config show` prints: the effective values as TOML, each with where it came from.
    ///
    /// Encryption keys are counted, not shown.
    package var shown: String {
        var text = ""
        Configuration.write(into: &text) { key in
            let origin = origin(of: key)
            guard let value = key.written(values) else { return "# \(key.name) is not set\n" }
            let count = values.beacons.bindkeys.count
            if key.isTable, count > 0 {
                return "# \(key.name): \(count) not shown  # \(origin)\n"
            }
            return "\(key.name) = \(value)  # \(origin)\n"
        }
        for stream in values.userStreams {
            text += "\n[stream.\(stream.name)]\n"
            for key in UserStreamKey.all {
                let origin = origin(of: "stream.\(stream.name).\(key.name)")
                text += "\(key.name) = \(key.written(stream))  # \(origin)\n"
            }
        }
        return text
    }

    private func origin(of key: ConfigurationKey) -> String { origin(of: key.path) }

    private func origin(of path: String) -> String {
        switch origins[path] {
        case nil: "default"
        case .file(let path, let line): "\(path):\(line)"
        case .environment(let name): "environment \(name)"
        }
    }
}
