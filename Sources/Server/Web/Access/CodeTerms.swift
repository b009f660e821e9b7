// The terms of an enrolment code.

/// The conditions under which a code is accepted.
package struct CodeTerms: Sendable, Equatable {
    /// The only device that can use the code; nil means any device.
    package var device: String?
    /// True if the code may enrol a device that is already enrolled; the old token ends then.
    package var replaces: Bool

    package init(device: String? = nil, replaces: Bool = false) {
        (self.device, self.replaces) = (device, replaces)
    }
}
