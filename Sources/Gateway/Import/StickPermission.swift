// Whether a stick may configure this device: `import.stick` in its own file.
internal import Configuration
internal import Glibc
internal import Host

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

    /// `path`: of the device's own file; the default holds where there is none.
    init(file path: String) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try SmallFile.read(path, limit: KeyTable<Configuration>.largestFile).bytes
        } catch {
            isGiven = error.code == ENOENT
            return
        }
        fileSetsOthers = KeyTable<Configuration>.setsKeys(bytes, except: Self.key)
        do throws(ConfigurationErrors) {
            let loaded = try Configuration.check(bytes, file: path, environment: [:])
            (isGiven, origin) = (loaded.values.allowsSticks, loaded.origins[Self.key])
        } catch {
            // A fault elsewhere does not decide it; where the key itself cannot be read, nobody has given it.
            let isReadable = KeyTable<Configuration>.isTOML(bytes)
            let isWrong = error.problems.contains { $0.key == Self.key }
            let parts = Configuration.table.rightParts(of: bytes, environment: [:])
            isGiven = isReadable && !isWrong && parts.allowsSticks
        }
    }
}
