import CLinux
import Foundation
import Glibc
import Host
import Support

/// A listening socket on loopback; the test handles each connection.
final class PlainServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let stop: StopSignal
    private let accepted = Locked(0)
    private let act: (@Sendable (Int32) -> Void)?

    /// Calls `act` with each connection, on its own thread, and then closes it; without `act` no
    /// connection is accepted.
    init(
        port: UInt16 = 0,
        isIPv6: Bool = false,
        backlog: Int32 = 16,
        act: (@Sendable (Int32) -> Void)? = nil
    ) throws {
        stop = try StopSignal()
        listener = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.act = act
        let port = try isIPv6 ? Self.bind6(listener, port) : Self.bind4(listener, port)
        self.port = port
        guard listen(listener, backlog) == 0 else { throw NeverHappened(what: "listen") }
        if act != nil { Thread.detachNewThread { [self] in accept() } }
    }

    var connectionCount: Int { accepted.value }

    func close() {
        stop.raise()
        shutdown(listener, Int32(SHUT_RDWR))
        if act == nil { Glibc.close(listener) }
    }

    private func accept() {
        while !stop.isRaised {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { break }
            accepted.update { $0 += 1 }
            Thread.detachNewThread { [self] in
                act?(client)
                Glibc.close(client)
            }
        }
        Glibc.close(listener)
    }

    private static func bind4(_ socket: Int32, _ port: UInt16) throws -> UInt16 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        try name(socket, &address)
        return UInt16(bigEndian: address.sin_port)
    }

    private static func bind6(_ socket: Int32, _ port: UInt16) throws -> UInt16 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        guard inet_pton(AF_INET6, "::1", &address.sin6_addr) == 1 else {
            throw NeverHappened(what: "::1")
        }
        try name(socket, &address)
        return UInt16(bigEndian: address.sin6_port)
    }

    private static func name<Address>(_ socket: Int32, _ address: inout Address) throws {
        var length = socklen_t(MemoryLayout<Address>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 ? getsockname(socket, $0, &length) : -1
            }
        }
        guard code == 0 else { throw NeverHappened(what: "bind: \(errno)") }
    }
}

/// A full backlog of unaccepted connections, so that the next one gets no answer.
final class FullBacklog {
    let server: PlainServer
    private var sockets: [Int32] = []

    init(port: UInt16 = 0, isIPv6: Bool = false) throws {
        server = try PlainServer(port: port, isIPv6: isIPv6, backlog: 0)
        for _ in 0..<4 {
            let client = socket(
                isIPv6 ? AF_INET6 : AF_INET,
                Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue),
                0
            )
            sockets.append(client)
            isIPv6 ? connect6(client) : connect4(client)
        }
    }

    deinit {
        for socket in sockets { Glibc.close(socket) }
        server.close()
    }

    private func connect4(_ client: Int32) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = server.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        start(client, &address)
    }

    private func connect6(_ client: Int32) {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = server.port.bigEndian
        _ = inet_pton(AF_INET6, "::1", &address.sin6_addr)
        start(client, &address)
    }

    private func start<Address>(_ client: Int32, _ address: inout Address) {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = connect(client, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}

/// Connection behaviour of hostile or broken servers.
enum Wire {
    @discardableResult
    static func send(_ client: Int32, _ text: String) -> Bool { send(client, Array(text.utf8)) }

    @discardableResult
    static func send(_ client: Int32, _ bytes: [UInt8]) -> Bool {
        Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Makes the next close send a reset.
    static func resetAtClose(_ client: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            client,
            SOL_SOCKET,
            SO_LINGER,
            &linger,
            socklen_t(MemoryLayout<linger>.size)
        )
    }

    /// Waits until the peer has closed.
    static func waitForEnd(_ client: Int32) {
        var block = [UInt8](repeating: 0, count: 4096)
        while recv(client, &block, block.count, 0) > 0 {}
    }

    /// Sends a byte at intervals until the peer closes.
    static func drip(_ client: Int32, _ text: String, every pause: UInt32) {
        send(client, text)
        while send(client, " ") { usleep(pause) }
    }
}
