// What the server may ask this device to do.
package import Configuration
import Host
import Minisign

/// `[remote]`: the jobs of the server that this device does.
package struct RemoteSettings: Configurable {
    /// Some of `permissions`; empty: nothing is fetched and nothing is done.
    package var allow: [String] = []
    /// The public key of minisign, its line in base64; nil: no signature is asked for.
    package var key: String?

    /// The permission for reports, syncs, restarts of a source and resends.
    package static let operate = "operate"
    /// The permission for settings.
    package static let settings = "settings"
    /// The permission for other versions of the program.
    package static let upgrade = "upgrade"
    private static let permissions = [operate, settings, upgrade]

    package var allowsSettings: Bool { allow.contains(Self.settings) }

    package init() {}

    package static var keys: [Key<Self>] {
        Key("allow", \.allow, allowed).says(
            "What the server may ask for: \"operate\" is reports, syncs, restarts, resends and held sound."
        )
        Key("key", optional: \.key, publicKey, example: exampleKey).says(
            "Take settings and upgrades only with a signature by this key of minisign(1)."
        )
    }

    private static let exampleKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"

    private static let publicKey = ValueFormat<String>.text(
        "the second line of a minisign.pub file",
        no: "public key of minisign",
        parse: { text in (try? MinisignPublicKey(text)).map { _ in text } },
        written: { $0 }
    )

    private static let allowed = ValueFormat<[String]>.list(
        "a list of \"operate\", \"settings\", \"upgrade\"; [] is off",
        problem: { permissions.contains($0) ? nil : "\"\(printable($0))\" is not one of them" }
    )
}
