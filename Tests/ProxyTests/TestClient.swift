// A client of the native API in Swift, for tests that need more control than aioesphomeapi gives.
import CLinux
import Foundation
import Host
import Support

@testable import Proxy

/// A blocking client; each read waits ten seconds at most.
final class TestClient {
    struct Closed: Error {}
    struct Silent: Error {}

    let socket: Int32
    private var sending: NoiseCipher?
    private var receiving: NoiseCipher?

    /// Connects; `receiveBuffer`: a small one makes a client slow at once.
    ///
    /// `host`: the last byte of its own address, 127.0.0.x.
    init(port: UInt16, receiveBuffer: Int32? = nil, host: UInt32? = nil) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if let host { try bind(to: 0x7F00_0000 + host) }
        if var size = receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, 4)
        }
        var limit = timeval(tv_sec: 10 * patience, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw SystemError.last("connect") }
    }

    private func bind(to own: UInt32) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = own.bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw SystemError.last("bind") }
    }

    deinit { close(socket) }

    func send(raw bytes: [UInt8]) {
        _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    func send(frame: [UInt8]) {
        send(raw: [1, UInt8(frame.count >> 8), UInt8(frame.count & 255)] + frame)
    }

    func send(_ type: UInt16, _ body: [UInt8] = []) throws {
        let header = [type, UInt16(body.count)].flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        send(frame: try required(sending?.seal(header + body)))
    }

    private func required<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw Closed() }
        return value
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let got = recv(socket, &buffer, buffer.count, 0)
            // At the end of the connection errno is that of an earlier call.
            if got < 0, errno == EAGAIN { throw Silent() }
            guard got > 0 else { throw Closed() }
            bytes += buffer.prefix(got)
        }
        return bytes
    }

    func frame() throws -> [UInt8] {
        let header = try read(3)
        return try read(Int(header[1]) << 8 | Int(header[2]))
    }

    func message() throws -> (type: UInt16, body: [UInt8]) {
        let plain = try required(receiving?.open(try frame()[...]))
        return (UInt16(plain[0]) << 8 | UInt16(plain[1]), Array(plain[4...]))
    }

    /// Returns the body of the next message of a type; skips others.
    func message(_ type: UInt16) throws -> [UInt8] {
        while true {
            let (next, body) = try message()
            if next == type { return body }
        }
    }

    /// True if the server closes the connection without another message.
    func isClosed() -> Bool {
        while true {
            do { _ = try frame() } catch { return !(error is Silent) }
        }
    }

    /// The initiator's side of the handshake (Noise specification, 7.5, NNpsk0); returns the
    /// server's refusal, nil if there is none.
    ///
    /// `meanwhile` is called before the answer is awaited.
    func shakeHands(
        key: [UInt8],
        then hello: Bool = true,
        meanwhile: () throws -> Void = {}
    ) throws -> String? {
        send(frame: [])
        let own = X25519.newPrivateKey()
        let ownPublic = try required(X25519.publicKey(of: own))
        var hash = Digest.sha256(Array(NoiseHandshake.protocolName.utf8))
        var keys = Digest.expand(hash, key, count: 3)
        hash = Digest.sha256(hash + Array("NoiseAPIInit".utf8) + [0, 0])
        hash = Digest.sha256(hash + keys[1])
        hash = Digest.sha256(hash + ownPublic)
        keys = Digest.expand(keys[0], ownPublic, count: 2)
        let sealed = try required(NoiseCipher(key: keys[1]).seal([], with: hash))
        hash = Digest.sha256(hash + sealed)
        send(frame: [0] + ownPublic + sealed)
        _ = try frame()
        try meanwhile()
        let answer = try frame()
        guard answer.first == 0 else { return String(decoding: answer.dropFirst(), as: UTF8.self) }
        let theirs = Array(answer[1..<33])
        hash = Digest.sha256(hash + theirs)
        keys = Digest.expand(keys[0], theirs, count: 2)
        keys = Digest.expand(keys[0], try required(X25519.sharedSecret(own, theirs)), count: 2)
        _ = try required(NoiseCipher(key: keys[1]).open(answer[33...], with: hash))
        let ends = Digest.expand(keys[0], [], count: 2)
        (sending, receiving) = (NoiseCipher(key: ends[0]), NoiseCipher(key: ends[1]))
        guard hello else { return nil }
        try send(MessageType.hello)
        _ = try message(MessageType.helloAnswer)
        return nil
    }

    /// Subscribes, and returns the scanner's state.
    func subscribe() throws -> [UInt8] {
        try send(MessageType.subscribeAdvertisements, [8, 1])
        return try message(MessageType.scannerState)
    }

    /// Returns the data of the advertisements in the next message that has some.
    func advertisements() throws -> [[UInt8]] {
        var reader = ProtobufReader(try message(MessageType.rawAdvertisements)[...])
        var all: [[UInt8]] = []
        while let (_, value) = try reader.next() {
            guard case .bytes(let one) = value else { throw Closed() }
            var fields = ProtobufReader(one)
            while let (field, value) = try fields.next() {
                if field == 4, case .bytes(let data) = value { all.append(Array(data)) }
            }
        }
        return all
    }
}
