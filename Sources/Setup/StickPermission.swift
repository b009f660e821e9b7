// Reads `import.stick` from the device's own file: may a stick configure this device?
package import Configuration
import Glibc
import Host

/// The value of `import.stick` in the device's own `waypost.toml`.
///
/// Read from that file even if a configuration from a card replaces it, so that neither a card nor
/// a stick can restore the permission.
package struct StickPermission {
    package static let key = "import.stick"

    package let isGiven: Bool
    /// Where the file sets the key; nil if it does not.
    package private(set) var origin: Origin?
    /// True if the file sets other keys, too.
    package private(set) var fileSetsOthers = false
    /// Why the key cannot be read; then sticks are not allowed.
    package private(set) var fault: ConfigurationProblem?

    /// `path`: the device's own file; without the file the default applies.
    package init(file path: String) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try SmallFile.read(path, limit: KeyTable<Configuration>.largestFile).bytes
        } catch {
            isGiven = error.code == ENOENT
            if !isGiven {
                fault = ConfigurationProblem(
                    place: path,
                    message: "cannot be read: \(error.reason)"
                )
            }
            return
        }
        fileSetsOthers = KeyTable<Configuration>.setsKeys(bytes, except: Self.key)
        do throws(ConfigurationErrors) {
            let loaded = try Configuration.check(bytes, file: path, environment: [:])
            (isGiven, origin) = (loaded.values.allowsSticks, loaded.origins[Self.key])
        } catch {
            // An error elsewhere in the file does not matter; an unreadable key denies.
            fault = Self.fault(of: bytes, file: path, error.problems)
            let parts = Configuration.table.rightParts(of: bytes, environment: [:])
            isGiven = fault == nil && parts.allowsSticks
        }
    }

    /// Returns the problem that makes this key unreadable; nil if readable or not set.
    private static func fault(
        of bytes: [UInt8],
        file path: String,
        _ problems: [ConfigurationProblem]
    ) -> ConfigurationProblem? {
        if let (key, line) = KeyTable<Configuration>.misplaced(Self.key, in: bytes) {
            return ConfigurationProblem(
                place: "\(printable(path, limit: 4096)):\(line)",
                key: key,
                message:
                    "is not \(Self.key), which belongs above all [sections], or as stick below [import]"
            )
        }
        return problems.first { problem in
            // A problem without a key concerns the whole file: not TOML, or too large.
            problem.key.isEmpty || problem.key == "import" || problem.key.hasPrefix("import.")
                || problem.message.contains(text: "did you mean import")
        }
    }
}
