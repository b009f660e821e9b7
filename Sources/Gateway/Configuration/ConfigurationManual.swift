// waypost.toml(5), made of the keys themselves: one source for it, for `config default` and for `config check`.

extension Configuration {
    /// The manual page in scdoc(5), as it stands in deploy/man/waypost.toml.5.scd.
    package static var manual: String {
        var text = head
        var section = ""
        for key in KeyTable.all.keys {
            if key.section != section {
                section = key.section
                text += "# [\(escaped(section))]\n\n"
            }
            text += entry(
                key.name,
                key.defaultText.map { "= \($0)" } ?? "(not set; such as \(key.example ?? ""))",
                key.summary,
                key.allowed
            )
        }
        text += ownStreams
        for key in UserStreamKey.all {
            text += entry(key.name, "", key.summary, key.allowed)
        }
        return text + tail
    }

    private static func entry(
        _ name: String,
        _ value: String,
        _ summary: String,
        _ allowed: String
    ) -> String {
        let first = value.isEmpty ? "*\(escaped(name))*" : "*\(escaped(name))* \(escaped(value))"
        return "\(first)\n\t\(escaped(summary)) Allowed: \(escaped(allowed)).\n\n"
    }

    /// What scdoc would take for markup.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            if "\\*_`#[]~<>+.".contains(character) { result.append("\\") }
            result.append(character)
        }
        return result
    }

    private static let head = #"""
        waypost.toml(5)

        # NAME

        waypost.toml - configuration of the field gateway Waypost

        # SYNOPSIS

        */etc/waypost/waypost.toml*

        # DESCRIPTION

        A TOML file. Every key has a default; a file of three lines is enough:

        ```
        [upload]
        endpoint = "https://data.example.org/api/ingest"
        token_file = "/etc/waypost/token"
        ```

        An unknown key, a wrong type or a value out of range is an error; *waypost config check* lists all of them with
        their lines, and the gateway exits with 78. *systemctl reload waypost* makes a change known: only what changed is
        started anew, and an invalid file changes nothing. Sizes take kB MB GB KiB MiB GiB, durations ms s m h d. CRLF, a
        byte order mark and trailing blanks are fine.

        The environment overrides each key: WAYPOST\_UPLOAD\_ENDPOINT is upload.endpoint.

        *waypost config default* prints a file with all keys, *waypost config show* the values in force and where each
        comes from.

        # GENERAL


        """#

    private static let ownStreams = #"""
        # [stream.NAME]

        A table declares a stream of your own, which *waypost put* NAME fills (see *waypost-protocol*(7)). NAME is made of
        a-z, 0-9 and \_. None of its keys is needed.


        """#

    private static let tail = #"""
        # FILES

        _/etc/waypost/waypost.toml_
        	The configuration.

        # SEE ALSO

        *waypost*(1), *waypost-protocol*(7)
        """# + "\n"
}
