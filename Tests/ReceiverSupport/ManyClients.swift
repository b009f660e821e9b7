// Gateways that repeat batches until they are answered, whatever happens to the receiver.
import Foundation
package import Support

/// Clients, each with a thread and an address, that send batch after batch and repeat unanswered
/// ones.
package final class ManyClients: Sendable {
    /// The receiver's current port.
    package let port: Locked<UInt16>
    /// Records of batches that were answered with 200.
    package let answered = Locked<Set<String>>([])
    /// Answers by status; 0 means no answer.
    package let statuses = Locked<[Int: Int]>([:])
    private let isOver = Locked(false)
    private let running: Locked<Int>

    package convenience init(_ count: Int, of receiver: ReceiverProcess) {
        self.init(count, at: receiver.port)
    }

    package init(_ count: Int, at port: UInt16) {
        self.port = Locked(port)
        running = Locked(count)
        for number in 0..<count {
            Thread.detachNewThread { [self] in
                run(number)
                running.update { $0 -= 1 }
            }
        }
    }

    /// Waits until the batches in progress are answered.
    package func finish() throws {
        isOver.update { $0 = true }
        try waitUntil("the last answers", limit: .seconds(300)) { running.value == 0 }
    }

    private func run(_ number: Int) {
        var round = 0
        while !isOver.value {
            let ids = (0..<5).map { Self.id(number, round, $0) }
            let body = RawRequest.batch(ids, device: "d\(number)")
            let key = "\(number)-\(round)"
            while send(key, body, from: "127.0.1.\(1 + number / 8)") != 200 { usleep(20_000) }
            answered.update { $0.formUnion(ids) }
            round += 1
        }
    }

    /// Returns a gateway's id for even clients, which the archive stores as ranges, and another
    /// form for odd ones.
    private static func id(_ client: Int, _ round: Int, _ place: Int) -> String {
        client.isMultiple(of: 2)
            ? String(format: "%08x-5ca1-8ab1-8e01-%012x", client, round * 5 + place)
            : "c\(client)-\(round)-\(place)"
    }

    private func send(_ key: String, _ body: [UInt8], from address: String) -> Int {
        let client = try? RawClient(port: port.value, from: address)
        client?.send(Array(RawRequest.head(key, length: body.count).utf8) + body)
        let status = client?.answer()?.status ?? 0
        statuses.update { $0[status, default: 0] += 1 }
        return status
    }
}

extension ReceiverProcess {
    /// Returns the statuses of parallel uploads, 16 per address.
    package func uploadsOf8MiB(_ count: Int) throws -> [Int] {
        let padding = #","text":"\#(String(repeating: "a", count: (1 << 20) - 80))""#
        let statuses = Locked<[Int]>([])
        let port = port
        try withThreads(count) { number in
            // The same records: this tests the path to the disk, not the disk.
            let body = RawRequest.batch((0..<8).map { "r\($0)" }, padding: padding)
            let client = try? RawClient(port: port, from: "127.0.2.\(1 + number / 16)")
            client?.send(RawRequest.head(length: body.count))
            client?.send(body)
            let status = client?.answer(within: 10)?.status ?? 0
            statuses.update { $0.append(status) }
        }
        return statuses.value
    }

    /// Returns the ids in a stream's files, in any order.
    package func ids(_ stream: String) throws -> [String] {
        try records(stream).compactMap { $0["id"] as? String }
    }
}
