// Whether the device records when its sources were listening.
package import Configuration

/// `[effort]`: the account of when each source was listening.
package struct EffortSettings: Configurable {
    package var isEnabled = true

    package init() {}

    package static var keys: [Key<Self>] {
        Key("enabled", \.isEnabled, .boolean).fixed()
            .says("False for a server that does not accept the stream waypost_effort.")
    }
}
