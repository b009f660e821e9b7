// Fuzz targets for clients of the Bluetooth proxy, for its key file, and for D-Bus.
import FuzzSupport
import Host
import Records
import Setup

@testable import Proxy

enum ProxyTargets {
    static let all = [
        FuzzTarget(name: "proxy-frames", run: frames),
        FuzzTarget(name: "proxy-message", run: message),
        FuzzTarget(name: "proxy-key", run: key),
    ]

    private static let identity = ProxyIdentity(
        name: "fuzz",
        area: nil,
        deviceID: "device",
        version: "1"
    )

    private static func session() -> APISession {
        let facts = ProxyFacts(
            identity,
            key: [UInt8](repeating: 7, count: 32),
            adapter: { nil },
            scanner: { ScannerState(.running, isActive: false) }
        )
        return APISession(facts) { true }
    }

    /// Checks that bytes without the key never get a client in, and get few bytes back.
    private static func frames(_ input: [UInt8]) {
        let session = session()
        for piece in pieces(input) {
            session.receive(piece)
            precondition(!session.isTrusted && !session.isSubscribed)
            precondition(session.outgoing.count < 300)
        }
        if session.stage == .leaving {
            let answer = session.outgoing
            session.receive(input)
            precondition(session.outgoing == answer)
        }
    }

    /// Checks a decrypted message of a client: two bytes of type, then the body.
    private static func message(_ input: [UInt8]) {
        guard input.count >= 2 else { return }
        let session = session()
        session.handle(MessageType.hello, [])
        precondition(session.stage == .ready)
        session.handle(UInt16(input[0]) << 8 | UInt16(input[1]), input[2...])
        precondition(session.clientName.unicodeScalars.count <= 65)
        // A message ends in as many bytes as it has.
        var reader = ProtobufReader(input[2...])
        var fields = 0
        do throws(ProtobufReader.MalformedError) {
            while try reader.next() != nil { fields += 1 }
        } catch {}
        precondition(fields * 2 <= input.count)
    }

    /// Checks that an accepted key is the one that its text says.
    private static func key(_ input: [UInt8]) {
        guard let key = ProxyKey(text: input) else { return }
        precondition(key.bytes.count == 32 && key.bytes.contains { $0 != 0 })
        precondition(ProxyKey(text: Array(key.base64.utf8)) == key)
        let text = String(decoding: input, as: UTF8.self)
        precondition(text.split(whereSeparator: \.isWhitespace).map(String.init) == [key.base64])
    }
}
