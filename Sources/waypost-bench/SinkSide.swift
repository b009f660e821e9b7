// The server that uploads are measured against: takes every body, looks at none, says 200.
import Glibc
import Host

/// An HTTP server on loopback with no more work than the answers; one connection at a time.
enum SinkSide {
    private static let answer = Array(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".utf8
    )

    /// Prints its port, then serves until standard input is closed: the bench holds the other end.
    static func serve() throws {
        let listener = try listen()
        while true {
            var entries = [PollEntry(listener.number), PollEntry(STDIN_FILENO)]
            _ = wait(for: &entries)
            if entries[1].isReady { return }
            guard entries[0].isReady else { continue }
            let client = accept(listener.number, nil, nil)
            guard client >= 0 else { continue }
            var connection = Connection(socket: Descriptor(owning: client))
            while connection.serve() {}
        }
    }

    /// On a port of the kernel's choice.
    private static func listen() throws -> Descriptor {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw SystemError.last("socket") }
        let listener = Descriptor(owning: number)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length) == 0 && Glibc.listen(number, 4) == 0
                    && getsockname(number, $0, &length) == 0
            }
        }
        guard isListening else { throw SystemError.last("listen", on: "127.0.0.1") }
        Output.write("port \(UInt16(bigEndian: address.sin_port))\n")
        return listener
    }

    /// One client's connection.
    private struct Connection: ~Copyable {
        let socket: Descriptor
        private var block = [UInt8](repeating: 0, count: 256 << 10)
        /// What has come of the next request's head.
        private var head: [UInt8] = []

        init(socket: consuming Descriptor) {
            self.socket = socket
        }

        /// Takes one request and answers it; false at the end of the connection.
        mutating func serve() -> Bool {
            let blank = Array("\r\n\r\n".utf8)
            var end = head.firstRange(of: blank)
            while end == nil {
                guard let count = receive(), head.count < 64 << 10 else { return false }
                head += block.prefix(count)
                end = head.firstRange(of: blank)
            }
            guard let end, let length = Self.length(head[..<end.lowerBound]) else { return false }
            var missing = length - (head.count - end.upperBound)
            // No client here sends a request before the answer to the one before.
            head.removeAll(keepingCapacity: true)
            while missing > 0 {
                guard let count = receive() else { return false }
                missing -= count
            }
            return missing == 0
                && send(socket.number, answer, answer.count, Int32(MSG_NOSIGNAL))
                    == answer.count
        }

        private mutating func receive() -> Int? {
            let count = recv(socket.number, &block, block.count, 0)
            return count > 0 ? count : nil
        }

        /// The value of `Content-Length`.
        private static func length(_ head: ArraySlice<UInt8>) -> Int? {
            for line in String(decoding: head, as: UTF8.self).lowercased().split(separator: "\r\n")
            where line.hasPrefix("content-length:") {
                return Int(line.drop { $0 != ":" }.dropFirst().drop { $0 == " " })
            }
            return nil
        }
    }
}
