// A raw HTTP client: single bytes, partial requests, other source addresses.
package import Foundation
import Glibc
import Support
package import Testing

/// One connection to a server; every address of 127.0.0.0/8 is local.
package final class RawClient: @unchecked Sendable {
    // Unchecked because each is used by one thread at a time.
    package struct Answer: Equatable {
        package var status: Int
        package var header: String
        package var body: String
    }

    private let number: Int32
    private var unread: [UInt8] = []

    /// Connects; reads time out after a minute.
    ///
    /// `window` is the receive buffer in bytes, 0 for the default.
    package init(port: UInt16, from address: String = "127.0.0.1", window: Int32 = 0) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var limit = timeval(tv_sec: 60 * patience, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var window = window
        if window > 0 {
            setsockopt(number, SOL_SOCKET, SO_RCVBUF, &window, 4)
            // Segments as on a real network: with loopback's the peer would send a megabyte ahead.
            var segment: Int32 = 1000
            setsockopt(number, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, 4)
        }
        guard Self.with(address, 0, { Glibc.bind(number, $0, $1) }) == 0,
            Self.with("127.0.0.1", port, { connect(number, $0, $1) }) == 0
        else { throw NeverHappened(what: "a connection from \(address)") }
    }

    deinit { Glibc.close(number) }

    package convenience init(_ receiver: ReceiverProcess, from address: String = "127.0.0.1") throws
    {
        try self.init(port: receiver.port, from: address)
    }

    private static func with(
        _ host: String,
        _ port: UInt16,
        _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Sends as much as the peer accepts; returns false once it accepts no more.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Closes the sending direction.
    package func finishSending() { shutdown(number, Int32(SHUT_WR)) }

    /// Returns the next answer; nil if the connection ended first.
    package func answer() -> Answer? {
        let end = Array("\r\n\r\n".utf8)
        while !unread.contains(end) { guard receive() else { return nil } }
        guard let head = unread.firstRange(of: end) else { return nil }
        let header = String(decoding: unread[..<head.lowerBound], as: UTF8.self)
        let lines = header.components(separatedBy: "\r\n")
        let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
        let status = Int(header.dropFirst(9).prefix(3)) ?? 0
        unread.removeFirst(head.upperBound)
        while unread.count < length ?? 0 { guard receive() else { return nil } }
        let body = String(decoding: unread.prefix(length ?? 0), as: UTF8.self)
        unread.removeFirst(length ?? 0)
        return Answer(status: status, header: header, body: body)
    }

    /// Returns whether the peer has closed, once data arrives or a minute is over.
    package func isAtEnd() -> Bool { unread.isEmpty && !receive() }

    /// Returns whether data or the end has arrived.
    package func hasNews() -> Bool {
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
    }

    /// Reads until a text arrives; returns false if the connection ended first, or after a minute.
    package func hears(_ text: String) -> Bool {
        let wanted = Array(text.utf8)
        var (isOpen, isThere) = (true, false)
        _ = eventually {
            if let found = unread.firstRange(of: wanted) {
                unread.removeFirst(found.upperBound)
                isThere = true
            } else if hasNews() {
                isOpen = receive()
            }
            return isThere || !isOpen
        }
        return isThere
    }

    private func receive() -> Bool {
        var block = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(number, &block, block.count, 0)
        guard count > 0 else { return false }
        unread += block.prefix(count)
        return true
    }
}

/// Requests as bytes.
package enum RawRequest {
    package static func head(
        _ key: String = UUID().uuidString,
        length: Int? = nil,
        encoding: String? = nil,
        extra: String = "",
        version: String = "HTTP/1.1",
        token: String = "t"
    ) -> String {
        var lines = [
            "POST /api/ingest \(version)", "Host: receiver", "X-Device-Token: \(token)",
            "Idempotency-Key: \"\(key)\"", "Content-Type: application/json",
        ]
        if let length { lines.append("Content-Length: \(length)") }
        if let encoding { lines.append("Content-Encoding: \(encoding)") }
        return lines.map { $0 + "\r\n" }.joined() + extra + "\r\n"
    }

    package static let health = "GET /healthz HTTP/1.1\r\nHost: receiver\r\n\r\n"

    /// Returns a batch of records with these ids; `padding` holds further members of each.
    ///
    /// `numbersSources`: "ID" in them is replaced by the record's id and a hyphen.
    package static func batch(
        _ ids: [String],
        device: String = "d1",
        padding: String = "",
        time: String = "2026-11-21T04:30:07.123Z",
        version: String = "1.0",
        numbersSources: Bool = false
    ) -> [UInt8] {
        let records = ids.map {
            let members =
                numbersSources ? padding.replacingOccurrences(of: "ID", with: "\($0)-") : padding
            return #"{"id":"\#($0)","timestamp":"\#(time)"\#(members)}"#
        }
        return Array(
            """
            {"stream_name":"places","device_id":"\(device)","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":\(ids.count),"app_version":"\(version)"}}
            """.utf8
        )
    }

    /// Returns a timestamp in RFC 3339.
    package static func time(secondsAgo seconds: TimeInterval = 0) -> String {
        Date(timeIntervalSinceNow: -seconds).formatted(.iso8601)
    }
}

extension ReceiverProcess {
    /// Sends a batch of one record from another source address; returns its status, 0 without an
    /// answer.
    package func takesABatch(from address: String = "127.9.9.9") throws -> Int {
        let client = try RawClient(self, from: address)
        let body = RawRequest.batch([UUID().uuidString])
        client.send(RawRequest.head(length: body.count))
        client.send(body)
        return client.answer()?.status ?? 0
    }

    /// Checks that the server answers without delay and its memory is within bounds.
    package func expectService(_ place: SourceLocation = #_sourceLocation) throws {
        #expect(try takesABatch() == 200, sourceLocation: place)
        let peak = try residentPeak()
        #expect(peak < Self.residentLimit, "resident: \(peak)", sourceLocation: place)
    }

    /// Returns the peak resident memory since the start, in bytes.
    package func residentPeak() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let digits = line?.filter(\.isNumber) ?? ""
        guard let kilobytes = Int(digits) else { throw NeverHappened(what: "VmHWM") }
        return kilobytes << 10
    }

    /// Returns the processor time used by all threads (proc(5), fields 14 and 15 of `stat`).
    package func processorSeconds() throws -> Double {
        let stat = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        let fields =
            stat.split(separator: ")").last?.split(separator: " ").compactMap { Double($0) } ?? []
        guard fields.count > 12 else { throw NeverHappened(what: "the fields of stat") }
        return (fields[10] + fields[11]) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Four times the default of --max-body, and 60 MB.
    package static let residentLimit = 4 * (16 << 20) + 60_000_000
}

extension RawClient {
    /// Returns the next answer; waits for up to `minutes`.
    package func answer(within minutes: Int) -> Answer? {
        for _ in 0..<minutes where !hasNews() {
            if (try? waitUntil("an answer") { hasNews() }) != nil { break }
        }
        return answer()
    }
}

/// Runs `body` on that many threads at once, and waits for all of them.
package func withThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) throws {
    let left = Locked(count)
    for number in 0..<count {
        Thread.detachNewThread {
            body(number)
            left.update { $0 -= 1 }
        }
    }
    try waitUntil("the end of all threads", limit: .seconds(600)) { left.value == 0 }
}
