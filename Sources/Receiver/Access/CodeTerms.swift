// What an enrolment code is good for, and what came of one.

/// What a code is good for.
package struct CodeTerms: Sendable, Equatable {
    /// The only device that can use it; nil: any.
    package var device: String?
    /// It enrols a device that is enrolled already, whose former token ends.
    package var replaces: Bool

    package init(device: String? = nil, replaces: Bool = false) {
        (self.device, self.replaces) = (device, replaces)
    }
}

/// The answer to a device that sent a code.
enum CodeExchange: Sendable {
    /// `replaced`: a former token of this device has ended.
    case token(GivenSecret, replaced: Bool)
    /// Not known, used, or expired.
    case badCode
    case codeOfAnotherDevice
    case alreadyEnrolled
}
