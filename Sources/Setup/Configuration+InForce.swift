// The configuration file that counts: an imported one replaces the device's own.
import Glibc
import Host

extension Configuration {
    /// The name of the imported configuration, beside `waypost.toml`.
    package static let importedName = "imported.toml"

    /// Returns the file in force for `path`: an imported configuration replaces `waypost.toml`.
    package static func inForce(_ path: String) -> String {
        guard path == "waypost.toml" || path.hasSuffix("/waypost.toml") else { return path }
        let imported = "\(folder(ofPath: path))/\(importedName)"
        return access(imported, F_OK) == 0 ? imported : path
    }
}
