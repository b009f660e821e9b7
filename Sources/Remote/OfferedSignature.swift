// The signature of what a server offers.
import Host
import JSON
import Minisign

/// The `signature` of a job that replaces a version; it has not been checked.
struct OfferedSignature: Sendable, Equatable {
    /// In the form of a minisign file; nil: there is none.
    let text: String?

    /// Returns nil for a member of another form.
    init?(_ members: [String: JSONValue]) {
        switch members["signature"] {
        case nil, .null?: text = nil
        case .text(let text)?: self.text = text
        default: return nil
        }
    }

    /// Throws a `Failure` unless it is that of `bytes`; `key`: that of `remote.key`, without which
    /// no signature is asked for; `missing`: the start of the message if there is none.
    func expect(of bytes: [UInt8], by key: String?, missing: String) throws {
        guard let key else { return }
        guard let text else {
            throw Failure("\(missing) no signature, and remote.key asks for one")
        }
        try MinisignPublicKey(key).verify(MinisignSignature(text), of: bytes)
    }
}
