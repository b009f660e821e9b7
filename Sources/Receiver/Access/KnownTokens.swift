// Tokens that were given out, by their digests.

/// Which device each token is for.
struct KnownTokens: Sendable {
    private var entries: [(digest: [UInt8], device: String)] = []

    mutating func add(digest: [UInt8], device: String) { entries.append((digest, device)) }

    /// Whether a token is bound to this device.
    func has(_ device: String) -> Bool { entries.contains { $0.device == device } }

    /// The device that has a token, "" for any; nil where it is not known.
    ///
    /// Compares with each, in the same time whichever it is: a hundred microseconds for some thousand devices.
    func device(of token: GivenSecret) -> String? {
        let digest = token.digest
        var found: String?
        for entry in entries where GivenSecret.areEqual(entry.digest, digest) {
            found = entry.device
        }
        return found
    }
}
