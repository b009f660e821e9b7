// Settings from the server, which lie above the device's own file.

/// A TOML text above a configuration file; it may set the keys that are marked *remote*.
package struct ConfigurationLayer: Sendable {
    /// Names it in messages and origins, as a file's path would.
    var name: String
    var text: String
    /// The file came from a card or a stick, and the keys that it sets stay.
    var isBelowFile: Bool

    package init(name: String, text: String, isBelowFile: Bool) {
        (self.name, self.text, self.isBelowFile) = (name, text, isBelowFile)
    }
}

extension Key {
    /// Returns why the server may not change these settings so; nil if it may.
    func refusalOfServer(from before: Settings, to new: Settings) -> String? {
        switch remote {
        case .anything: nil
        case .onlyOff where written(before) == "false" && written(new) == "true":
            "is switched off by the device's own file, and the server cannot switch it on"
        case .onlyOff: nil
        case .nothing: "cannot be set by the server"
        }
    }
}
