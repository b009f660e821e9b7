// The gateways of `waypost-bench receiver`.
import CLinux
import Glibc
import Host
import HTTP
import Synchronization
import Upload

/// Bodies as gateways send them, and clients that send each of them once.
final class ReceiverLoad: Sendable {
    /// As many as the receiver serves at once, eight of an address.
    private static let clients = 64

    private let requests: [[UInt8]]
    private let records: Int

    var count: Int { requests.count }

    /// Bytes on the wire, headers included.
    var bytes: Int { requests.reduce(0) { $0 + $1.count } }

    init(gateways: Int, rounds: Int, records: Int) throws {
        self.records = records
        requests = try (0..<gateways * rounds).map { number in
            try Self.request(gateway: number % gateways, round: number / gateways, records: records)
        }
    }

    /// Ids as the gateway makes them: a number of its start, the stream, the row.
    private static func request(gateway: Int, round: Int, records: Int) throws -> [UInt8] {
        let lines = (0..<records).map { record in
            let id = hex(gateway, 8) + "-5ca1-8ab1-8e01-" + hex(round * records + record, 12)
            let second = (record / 10) % 60
            return """
                {"id":"\(id)","timestamp":"2026-11-21T04:\(10 + round % 50):\(second < 10 ? "0" : "")\(second).\(100 + record % 900)Z",\
                "kind":"ibeacon","beacon_id":"f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/\(record % 40)",\
                "address":"c2:00:5e:00:00:\(hex(record % 40, 2))","address_type":"random_static",\
                "rssi":\(-60 - record % 30),"tx_power":-59,"clock":"synced"}
                """
        }
        let device = "gateway-\(gateway)"
        let text = """
            {"stream_name":"linux_bluez_beacons","device_id":"\(device)","data":[\(lines.joined(separator: ","))],\
            "batch_metadata":{"total_records":\(records)}}
            """
        var body: [UInt8] = []
        let gzip = try GzipStream()
        try gzip.append(Array(text.utf8), to: &body)
        try gzip.finish(to: &body)
        let head = """
            POST /api/ingest HTTP/1.1\r\nHost: receiver\r\nX-Device-Token: bench\r\nIdempotency-Key: "\(device)-\(round)"\r
            Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r
            Connection: close\r\n\r\n
            """
        return Array(head.utf8) + body
    }

    private static func hex(_ number: Int, _ width: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    // MARK: Sending

    /// Sends all; throws when one is not answered with 200.
    func run(port: UInt16) throws -> Figures {
        let shared = Progress()
        let before = Usage.now()
        let threads = try (0..<Self.clients).map { client in
            try GatewayThread { [self] in work(client, port, shared) }
        }
        for thread in threads { thread.join() }
        let wall = Usage.now().wall - before.wall
        let failures = shared.failed.load(ordering: .relaxed)
        guard failures == 0 else {
            throw BenchFailure("\(failures) of \(count) batches were not taken")
        }
        var figures = Figures()
        figures["batches_per_s"] = Double(count) / wall
        figures["records_per_s"] = Double(count * records) / wall
        let sorted = shared.latencies.withLock { $0.sorted() }
        for (name, part) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("most", 1)] {
            figures["latency_\(name)_ms"] =
                sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
        }
        return figures
    }

    private final class Progress: Sendable {
        let next = Atomic(0)
        let failed = Atomic(0)
        let latencies = Mutex<[Double]>([])
    }

    private func work(_ client: Int, _ port: UInt16, _ shared: Progress) {
        var own: [Double] = []
        while case let number = shared.next.wrappingAdd(1, ordering: .relaxed).oldValue,
            number < count
        {
            let start = Usage.now().wall
            let isTaken = Self.send(requests[number], port, from: UInt32(client / 8))
            if !isTaken { shared.failed.wrappingAdd(1, ordering: .relaxed) }
            own.append((Usage.now().wall - start) * 1000)
        }
        shared.latencies.withLock { $0 += own }
    }

    private static func send(_ request: [UInt8], _ port: UInt16, from host: UInt32) -> Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        // 127.0.2.1 and on: all of 127.0.0.0/8 is this machine.
        guard call(bind, number, 0x7F00_0201 + host, 0), call(connect, number, 0x7F00_0001, port)
        else {
            return false
        }
        var rest = request[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(number, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = read(number, &answer, answer.count)
        return count > 12 && String(decoding: answer[9..<12], as: UTF8.self) == "200"
    }

    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32,
        _ number: Int32,
        _ host: UInt32,
        _ port: UInt16
    ) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host.bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

/// A thread in an array, which cannot hold what is not copyable.
private final class GatewayThread {
    private var thread: OwnThread?

    init(_ body: @escaping @Sendable () -> Void) throws {
        thread = try OwnThread("gateway", body)
    }

    func join() { thread.take()?.join() }
}
