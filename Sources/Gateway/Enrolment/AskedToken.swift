// The token that this device asks a server for, until it has it.
import Configuration
import Glibc
import Host
import HTTP
import Upload

/// Made here and stored before the server is asked: a server that has used the code up gives this token again, where its
/// answer was lost on the way or in a power cut.
///
/// What it gave is kept here, too, until it is stored where it counts.
struct AskedToken {
    private static let fileName = "asked-token"
    /// Behind a token that the server has given.
    private static let mark = "\ngiven\n"

    let configuration: Configuration
    /// Whom the file belongs to; nil: whoever makes it.
    var owner: FileOwner?

    private var path: String { "\(configuration.stateDirectory)/\(Self.fileName)" }

    /// What a server gives for a code: this token, or, from one that knows no such wish, one of its own.
    ///
    /// Throws a Failure with what the server or the network said, a SystemError where the token cannot be stored.
    func exchange(_ code: String, for device: String, _ transport: TransportSettings) throws
        -> String
    {
        let question = "\(transport.endpoint)\n\(code)\n"
        let kept = kept(question)
        // The code is used up: whatever became of the token since, there is no other one for it.
        if let kept, kept.hasSuffix(Self.mark) { return String(kept.dropLast(Self.mark.count)) }
        let given = try Enrolment.exchange(
            code: code,
            deviceID: device,
            wanted: try kept ?? make(question),
            transport,
            until: StopSignal()
        )
        try keep(question, given + Self.mark)
        return given
    }

    /// What the server gave is stored in its place.
    func forget() { unlink(path) }

    /// What was asked for before, or has been given.
    private func kept(_ question: String) -> String? {
        guard let text = SmallText.read(path, followsLink: false), text.hasPrefix(question) else {
            return nil
        }
        let kept = text.dropFirst(question.count)
        return kept.hasSuffix(Self.mark) || kept.utf8.count == 64 ? String(kept) : nil
    }

    /// A new one of 256 random bits.
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
