// Stores the token that this device requests from a server, so that the request is idempotent.
import Configuration
import Glibc
import Host
import HTTP
import Setup
import Upload

/// The token that the device asks for in exchange for a code, stored before the request.
///
/// If the answer is lost on the network or in a power cut, a retry asks for the same token, and the
/// server grants it although the code is used up. The granted token is stored here, too, until it
/// is stored in its final file.
struct AskedToken {
    private static let fileName = "asked-token"
    /// Follows a token that the server has granted.
    private static let mark = "\ngiven\n"

    let configuration: Configuration
    /// The owner of the file; nil: the process's user.
    var owner: FileOwner?

    private var path: String { "\(configuration.stateDirectory)/\(Self.fileName)" }

    /// Exchanges a code for a token: this one, or one that the server chooses.
    ///
    /// `asker`: the user that asks the server; nil: this process's. Throws a Failure from server or
    /// network, a SystemError if the token cannot be stored.
    func exchange(
        _ code: String,
        for device: String,
        _ transport: TransportSettings,
        as asker: FileOwner?
    ) throws -> String {
        let question = "\(transport.endpoint)\n\(code)\n"
        let kept = kept(question)
        // The code is used up: it gives no other token.
        if let kept, kept.hasSuffix(Self.mark) { return String(kept.dropLast(Self.mark.count)) }
        let wanted = try kept ?? make(question)
        let given = try asUser(asker) {
            try Enrolment.exchange(
                code: code,
                deviceID: device,
                wanted: wanted,
                transport,
                until: StopSignal()
            )
        }
        try keep(question, given + Self.mark)
        return given
    }

    /// Deletes the file, once the granted token is stored in its final place.
    func forget() { unlink(path) }

    /// Returns the token that was requested or granted before, for the same server and code.
    private func kept(_ question: String) -> String? {
        guard let text = SmallText.read(path, followsLink: false), text.hasPrefix(question) else {
            return nil
        }
        let kept = text.dropFirst(question.count)
        return kept.hasSuffix(Self.mark) || kept.utf8.count == 64 ? String(kept) : nil
    }

    /// Makes and stores a new token of 256 random bits.
    private func make(_ question: String) throws -> String {
        // The system's generator is getrandom(2).
        let token = hex((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        try keep(question, token)
        return token
    }

    private func keep(_ question: String, _ token: String) throws {
        let bytes = Array((question + token).utf8)
        try SmallFile.replace(path, bytes, mode: 0o600, owner: owner)
    }
}
