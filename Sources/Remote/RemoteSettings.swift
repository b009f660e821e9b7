// What the server may ask this device to do.
package import Configuration
import Host

/// `[remote]`: the jobs of the server that this device does.
package struct RemoteSettings: Configurable {
    /// Some of `permissions`; empty: nothing is fetched and nothing is done.
    package var allow: [String] = []

    /// The permission for reports, syncs, restarts of a source and resends.
    package static let operate = "operate"
    private static let permissions = [operate, "settings", "upgrade"]

    package init() {}

    package static var keys: [Key<Self>] {
        Key("allow", \.allow, allowed).says(
            "What the server may ask for: \"operate\" is reports, syncs, restarts and resends."
        )
    }

    private static let allowed = ValueFormat<[String]>.list(
        "a list of \"operate\", \"settings\", \"upgrade\"; [] is off",
        problem: { permissions.contains($0) ? nil : "\"\(printable($0))\" is not one of them" }
    )
}
