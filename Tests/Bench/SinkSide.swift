// The server that uploads are measured against: takes every body, looks at none, says 200.
import CLinux
import Glibc
import Host

/// An HTTP server on loopback with no more work than the answers; one connection at a time.
enum SinkSide {
    private static let answer = Array(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".utf8
    )

    /// Prints its port, then serves until standard input is closed: the bench holds the other end.
    ///
    /// `link`: the megabits a second it takes, as a line to a site would; 0 for all that come.
    static func serve(link: Int) throws {
        let listener = try listen(buffer: link > 0 ? 64 << 10 : nil)
        while true {
            var entries = [PollEntry(listener.number), PollEntry(STDIN_FILENO)]
            _ = wait(for: &entries)
            if entries[1].isReady { return }
            guard entries[0].isReady else { continue }
            let client = accept(listener.number, nil, nil)
            guard client >= 0 else { continue }
            var connection = Connection(socket: Descriptor(owning: client), link: link)
            while connection.serve() {}
        }
    }

    /// On a port of the kernel's choice; `buffer` bytes wait in the kernel at most.
    private static func listen(buffer: Int32?) throws -> Descriptor {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw SystemError.last("socket") }
        let listener = Descriptor(owning: number)
        if let buffer { waypost_set_receive_buffer(number, buffer) }
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
        private let link: Int
        private var block: [UInt8]
        /// Of the request that is coming in: when it began, and how much of it came.
        private var began = 0.0
        private var bytes = 0
        /// The bytes received of the next request's head.
        private var head: [UInt8] = []

        init(socket: consuming Descriptor, link: Int) {
            self.socket = socket
            self.link = link
            block = [UInt8](repeating: 0, count: link > 0 ? 16 << 10 : 256 << 10)
        }

        /// Takes one request and answers it; false at the end of the connection.
        mutating func serve() -> Bool {
            let blank = Array("\r\n\r\n".utf8)
            bytes = 0
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
            guard count > 0 else { return nil }
            if link > 0 { pace(count) }
            return count
        }

        /// Waits until so much could have come over the line.
        private mutating func pace(_ count: Int) {
            let now = Double(SystemClock().now().nanoseconds) / 1e9
            if bytes == 0 { began = now }
            bytes += count
            let due = began + Double(bytes * 8) / (Double(link) * 1e6)
            if due > now { usleep(useconds_t((due - now) * 1e6)) }
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
