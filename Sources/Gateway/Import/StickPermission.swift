// Whether a stick may configure this device: `import.stick` in its own file.
import Configuration
import Glibc
import Host

/// What the device's own `waypost.toml` says of sticks.
///
/// Read from that file even where a configuration from a card stands in for it, so that neither a card nor a stick can
/// give the permission back.
struct StickPermission {
    static let key = "import.stick"

    let isGiven: Bool
    /// Where the file sets it; nil where it does not.
    private(set) var origin: Origin?
    /// Whether the file sets other keys, too.
    private(set) var fileSetsOthers = false
    /// Why it is not known what a person meant, who has not given it then.
    private(set) var fault: ConfigurationProblem?

    /// `path`: of the device's own file; the default holds where there is none.
    init(file path: String) {
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
            // A fault elsewhere does not decide it; where the key itself cannot be read, nobody has given it.
            fault = Self.fault(of: bytes, file: path, error.problems)
            let parts = Configuration.table.rightParts(of: bytes, environment: [:])
            isGiven = fault == nil && parts.allowsSticks
        }
    }

    /// What keeps this key from being read; nil where it can be, or is not set.
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
                    "is not \(Self.key), which stands above all [sections], or as stick below [import]"
            )
        }
        return problems.first { problem in
            // Without a key it is about the whole file: no TOML, or too large.
            problem.key.isEmpty || problem.key == "import" || problem.key.hasPrefix("import.")
                || problem.message.contains(text: "did you mean import")
        }
    }
}
