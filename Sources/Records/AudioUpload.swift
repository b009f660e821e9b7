// Which recorded sound is uploaded (waypost.toml(5), audio.upload).

/// The recorded sound that is uploaded; the rest is held: on the card, and not pending.
package enum AudioUpload: String, Sendable, CaseIterable {
    case all
    /// Sound that a record of a marking stream, or a person, has asked for.
    case marked
    case none
}
