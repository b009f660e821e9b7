// Renders the keys as the commented file, the values in force, and the manual page.

extension KeyTable {
    /// The body of `waypost config default`: every key, its default and its allowed values.
    package var commented: String {
        var text = written { key in
            let line =
                key.defaultText.map { "\(key.name) = \($0)" }
                ?? "#\(key.name) = \(key.example ?? "")"
            return "\n" + comment(key) + "\(line)\n"
        }
        guard let named else { return text }
        text += "\n" + named.about.map { "# \($0)\n" }.joined()
        text += "#[\(named.section).\(named.example)]\n"
        for (key, value) in named.described {
            text += "\n" + comment(key) + "#\(key.name) = \(value)\n"
        }
        return text
    }

    private func comment(_ key: Key<Settings>) -> String {
        let restart = key.needsRestart ? "# A change needs a restart.\n" : ""
        return "# \(key.summary)\n\(restart)# Allowed: \(key.allowed)\n"
    }

    /// Returns the output of `waypost config show`: the values as TOML, each with its origin.
    ///
    /// Members of tables with free keys are counted, not shown, because they may be secrets.
    package func shown(_ loaded: Loaded<Settings>) -> String {
        written(table: named?.names(loaded.values) ?? []) { key in
            let origin =
                switch loaded.origins[key.path] {
                case nil: "default"
                case .file(let path, let line): "\(path):\(line)"
                case .environment(let name): "environment \(name)"
                }
            guard let value = key.written(loaded.values) else {
                return "# \(key.name) is not set\n"
            }
            if let count = key.count?(loaded.values), count > 0 {
                return "# \(key.name): \(count) not shown  # \(origin)\n"
            }
            return "\(key.name) = \(value)  # \(origin)\n"
        }
    }

    /// Writes all keys in file order under their sections.
    private func written(
        table names: [String] = [],
        heading: (String) -> String = { "\n[\($0)]\n" },
        _ line: (Key<Settings>) -> String
    ) -> String {
        var (text, section) = ("", "")
        for key in keys + names.flatMap({ named?.keys($0) ?? [] }) {
            if key.section != section {
                section = key.section
                text += heading(section)
            }
            text += line(key)
        }
        return text
    }

    /// The list of keys in scdoc(5), for waypost.toml(5).
    package var manual: String {
        var text = written(heading: { "# [\(escaped($0))]\n\n" }) { key in
            let value = key.defaultText.map { "= \($0)" }
            return entry(key, value ?? "(not set; such as \(key.example ?? ""))")
        }
        guard let named else { return text }
        text += "# [\(named.section).NAME]\n\n\(escaped(named.about.joined(separator: " ")))\n\n"
        for (key, value) in named.described { text += entry(key, "= \(value)") }
        return text
    }

    private func entry(_ key: Key<Settings>, _ value: String) -> String {
        let restart = key.needsRestart ? " A change needs a restart." : ""
        let remote =
            switch key.remote {
            case .nothing: ""
            case .anything: " _Remote._"
            case .onlyOff: " _Remote_, but only to make it false."
            }
        return "*\(escaped(key.name))* \(escaped(value))\n\t\(escaped(key.summary))\(restart)"
            + " Allowed: \(escaped(key.allowed)).\(remote)\n\n"
    }

    /// Escapes the characters that scdoc takes for markup.
    private func escaped(_ text: String) -> String {
        text.map { "\\*_`#[]~<>+.".contains($0) ? "\\\($0)" : String($0) }.joined()
    }
}
