// A broker on a loopback port that sends a fuzzer's bytes to real connections.
import Glibc
import Host
import Support

/// The bytes that the broker sends in one connection.
struct BrokerScript: Sendable {
    var bytes: [UInt8]
    /// Raised once the client sends nothing more, before the broker ends its side.
    var stop: StopSignal?
}

/// Runs `client` with the port of a broker, which serves one connection per script, in their order.
///
/// Returns the bytes that the broker received, per connection.
func withBroker(_ scripts: [BrokerScript], _ client: (UInt16) -> Void) throws -> [[UInt8]] {
    let (listener, port) = listening()
    defer { close(listener) }
    let received = Locked([[UInt8]]())
    let thread = try OwnThread("broker") {
        for script in scripts {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { return }
            let bytes = serve(socket, script)
            received.update { $0.append(bytes) }
        }
    }
    client(port)
    // Nobody may have come to the last ones.
    shutdown(listener, Int32(SHUT_RDWR))
    thread.join()
    return received.value
}

private func serve(_ socket: Int32, _ script: BrokerScript) -> [UInt8] {
    defer { close(socket) }
    _ = send(socket, script.bytes, script.bytes.count, Int32(MSG_NOSIGNAL))
    var received: [UInt8] = []
    if let stop = script.stop {
        read(socket, into: &received, pause: .milliseconds(3))
        stop.raise()
    }
    shutdown(socket, Int32(SHUT_WR))
    read(socket, into: &received)
    return received
}

/// Reads until the client ends the connection, or sends nothing for `pause`.
private func read(_ socket: Int32, into received: inout [UInt8], pause: Duration? = nil) {
    var block = [UInt8](repeating: 0, count: 4096)
    while true {
        var entries = [PollEntry(socket)]
        guard wait(for: &entries, timeout: pause) > 0 else { return }
        let count = recv(socket, &block, block.count, 0)
        guard count > 0 else { return }
        received += block.prefix(count)
    }
}

/// Splits what a client has sent into packets: the first byte, and what follows the length.
func clientPackets(_ bytes: [UInt8]) -> [(first: UInt8, body: [UInt8])] {
    var packets: [(first: UInt8, body: [UInt8])] = []
    var rest = bytes[...]
    while let first = rest.popFirst() {
        var (length, shift) = (0, 0)
        while let byte = rest.popFirst() {
            length |= Int(byte & 0x7F) << shift
            shift += 7
            if byte & 0x80 == 0 { break }
        }
        precondition(rest.count >= length)
        packets.append((first, Array(rest.prefix(length))))
        rest = rest.dropFirst(length)
    }
    return packets
}

/// Returns the ids of the acknowledgements (PUBACK) among bytes of a client.
func acknowledgements(in bytes: [UInt8]) -> [UInt16] {
    clientPackets(bytes).filter { $0.first == 0x40 }.map {
        UInt16($0.body[0]) << 8 | UInt16($0.body[1])
    }
}
