// Fuzz targets for input from clients of the server.
import Foundation
import FuzzSupport
import Glibc
import Support

@testable import ServerArchive
@testable import ServerBase
@testable import ServerWeb

extension FuzzTarget {
    /// All fuzz targets of the server.
    static let receiver = ReceiverTargets.all + RouteTargets.all + RecordTargets.all
}

private enum ReceiverTargets {
    static let all = [
        FuzzTarget(name: "receiver-backup", run: backup),
        FuzzTarget(name: "receiver-body", run: body),
        FuzzTarget(name: "receiver-columns", run: columns),
        FuzzTarget(name: "receiver-inflate", run: inflate),
        FuzzTarget(name: "receiver-request", run: { _ = HTTPFuzzServer.shared?.receive($0) }),
    ]

    private static func backup(_ input: [UInt8]) {
        do {
            try HostileBackup.shared.get().receive(input)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// Checks that an accepted body is JSON to Foundation too, and that its records are the array's
    /// elements, byte for byte.
    private static func body(_ input: [UInt8]) {
        let spool = Spool(folder: "/tmp", memory: input.count)
        do {
            try input.withUnsafeBytes(spool.append)
            try spool.withView { view in
                let batch = try IncomingBatch(checking: view)
                let object = try? JSONSerialization.jsonObject(with: Data(input)) as? [String: Any]
                precondition((object?["data"] as? [Any])?.count == batch.count)
                precondition(isName(batch.stream) && isName(batch.device))
                var count = 0
                try batch.forEachRecord(of: view) { record in
                    check(record, Data(view[record.extent]))
                    try record.audio.map { try Base64Text(view, $0.data).decode { _ in } }
                    try checkLine(of: record, view)
                    count += 1
                }
                precondition(count == batch.count)
            }
        } catch let refusal as HTTPError {
            precondition((400..<500).contains(refusal.status) && refusal.reason.utf8.count < 300)
        } catch let columns as IncomingColumns {
            check(columns, of: input)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// The value of `columns` alone.
    private static func columns(_ input: [UInt8]) {
        let start = #"{"stream_name":"s","device_id":"d","columns":"#
        body(Array(start.utf8) + input + Array(#","batch_metadata":{"total_records":2}}"#.utf8))
    }

    /// Checks that rows made of columns are JSON, as many as they say, or refused.
    private static func check(_ columns: IncomingColumns, of input: [UInt8]) {
        let rows = Spool(folder: "/tmp", memory: 1 << 20)
        do {
            try input.withUnsafeBytes { bytes in
                let view = ByteView(bytes, isMapped: false)
                try columns.writeRows(
                    of: view,
                    to: rows,
                    atMost: Inflater.limit,
                    limit: .checking
                )
            }
            precondition(rows.count <= Inflater.limit + input.count)
            let made = Data(try rows.bytes(from: 0, atMost: rows.count))
            let object = try? JSONSerialization.jsonObject(with: made) as? [String: Any]
            let given = try? JSONSerialization.jsonObject(with: Data(input[columns.value]))
            let count = (given as? [String: Any])?["count"] as? Int
            precondition((object?["data"] as? [Any])?.count == count)
        } catch let refusal as HTTPError {
            precondition([413, 422].contains(refusal.status) && refusal.reason.utf8.count < 300)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// Checks that the stored line of a record is one line, and can be stored again.
    private static func checkLine(of record: IncomingRecord, _ view: ByteView) throws {
        var line: [UInt8] = []
        try record.writeLine(of: view, for: .archive) { line += $0 }
        precondition(!line.contains(10) && !line.contains(13))
        try line.withUnsafeBytes {
            var text = BodyJSON(ByteView($0, isMapped: false))
            try text.record { _ = try $0.value() }
            try text.end()
        }
    }

    private static func check(_ record: IncomingRecord, _ bytes: Data) {
        let object = try? JSONSerialization.jsonObject(with: bytes) as? [String: Any]
        precondition(object?["id"] is String && isName(record.id))
        precondition(record.time.date.utf8.count == 10)
    }

    /// Checks that decompression is bounded, and either complete or refused.
    private static func inflate(_ input: [UInt8]) {
        let wire = Spool(folder: "/tmp", memory: input.count)
        do {
            try input.dropFirst().withUnsafeBytes(wire.append)
            let encoding = ["gzip", "zstd", ""][Int(input.first ?? 0) % 3]
            let plain = try Inflater.inflate(wire, encoding: encoding, folder: "/tmp")
            precondition(plain.count <= Inflater.limit)
        } catch is HTTPError {
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

/// The HTTP server alone, with routes that accept everything; shared by all inputs.
private final class HTTPFuzzServer: @unchecked Sendable {
    // Unchecked because nothing of the daemon is used after its creation.
    static let shared = try? HTTPFuzzServer()

    private struct Echo: HTTPApplication {
        let spoolFolder = "/tmp"

        func plan(_ head: RequestHead) -> RequestPlan {
            head.method == "POST"
                ? .body(limit: 4096) : .answer(HTTPAnswer(200, ["path": head.path]))
        }

        func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
            HTTPAnswer(200, ["count": body.count])
        }
    }

    private let daemon: HTTPDaemon
    private let port: UInt16

    private init() throws {
        let (socket, port) = listening(backlog: 64)
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        var bounds = HTTPBounds()
        bounds.perAddress = 0
        self.port = port
        daemon = try HTTPDaemon(listener: socket, bounds: bounds, application: Echo())
    }

    /// Checks that the server answers in HTTP or not at all, ends, and serves the next connection.
    func receive(_ input: [UInt8]) -> Bool {
        let answer = exchange(input)
        precondition(answer.isEmpty || answer.starts(with: Array("HTTP/1.".utf8)))
        let health = exchange(Array("GET /healthz HTTP/1.0\r\n\r\n".utf8))
        precondition(
            health.starts(with: Array("HTTP/1.1 200".utf8))
                || health.starts(with: Array("HTTP/1.0 200".utf8))
        )
        return true
    }

    private func exchange(_ input: [UInt8]) -> [UInt8] {
        let number = connected()
        defer { close(number) }
        _ = input.withUnsafeBytes { send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        shutdown(number, Int32(SHUT_WR))
        var answer: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4096)
        while case let count = received(number, &block), count > 0 {
            answer += block.prefix(count)
        }
        return answer
    }

    private func connected() -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        while true {
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            setsockopt(
                number,
                SOL_SOCKET,
                SO_RCVTIMEO,
                &limit,
                socklen_t(MemoryLayout<timeval>.size)
            )
            let code = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if code == 0 { return number }
            // At thousands of connections per second all ports may still be in use.
            let why = errno
            close(number)
            if why != EINTR && why != EADDRNOTAVAIL {
                fatalError("the server takes no connection: \(String(cString: strerror(why)))")
            }
        }
    }

    /// libFuzzer's timer interrupts calls with a timeout despite sigaction(2) (signal(7)).
    private func received(_ number: Int32, _ block: inout [UInt8]) -> Int {
        while true {
            let count = recv(number, &block, block.count, 0)
            if count >= 0 || errno != EINTR { return count }
        }
    }
}
