// The token that this device asks a server for, until it has it.
internal import Board
internal import Configuration
internal import Glibc
internal import Host
internal import Requests
internal import Upload

/// Made here and stored before the server is asked: a server that has used the code up gives this token again, where its
/// answer was lost on the way or in a power cut.
struct AskedToken {
    private static let fileName = "asked-token"

    let configuration: Configuration

    private var path: String { "\(configuration.stateDirectory)/\(Self.fileName)" }

    /// What a server gives for a code: this token, or, from one that knows no such wish, one of its own.
    ///
    /// Throws a Failure with what the server or the network said, a SystemError where the token cannot be stored.
    func exchange(_ code: String, for device: String, _ transport: TransportSettings) throws
        -> String
    {
        try Enrolment.exchange(
            code: code,
            deviceID: device,
            wanted: try token(for: code, at: transport.endpoint),
            transport,
            until: StopSignal()
        )
    }

    /// What the server gave is stored in its place.
    func forget() { unlink(path) }

    /// The one that was asked for before, else a new one of 256 random bits.
    private func token(for code: String, at endpoint: String) throws -> String {
        let question = "\(endpoint)\n\(code)\n"
        if let asked = SmallText.read(path), asked.hasPrefix(question) {
            let token = asked.dropFirst(question.count)
            if token.utf8.count == 64 { return String(token) }
        }
        // The system's generator is getrandom(2).
        let token = hex((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        try SmallFile.replace(path, Array((question + token).utf8), mode: 0o600)
        return token
    }
}
