// The next body is made during the request before it.
import Dispatch
import Glibc
import Host
import HTTP
import Queue
import QueueSupport
import Records
import Support
import Testing

@testable import Upload

@Suite struct NextBodyTests {
    private static let limit = 64 << 10

    private let temporary = TemporaryFolder()

    /// Makes a queue with some batches of sightings.
    private func queue() throws -> Queue {
        let queue = try Queue(at: temporary.path + "/queue.sqlite", clock: SystemClock())
        addBeacons(2000, to: queue)
        return try queue.flushed()
    }

    private static func destination(
        _ server: FaultyServer,
        _ compression: Compression
    ) throws -> ServerDestination {
        try ServerDestination(
            DestinationSettings(
                transport: TransportSettings(endpoint: server.endpoint, userAgent: "waypost/test"),
                deviceID: "device",
                streamNames: [.beacons: "beacons"],
                compression: compression,
                token: { "secret" }
            )
        )
    }

    /// Freezes and sends the next batch; returns nil if nothing is pending.
    private func sendNext(
        _ queue: Queue,
        _ destination: ServerDestination,
        _ reader: Reader
    ) throws -> Batch? {
        guard let range = queue.pending(.beacons) else { return nil }
        let last = try destination.lastRecord(of: range, limit: Self.limit, from: reader)
        let batch = try #require(try queue.perform { try $0.freeze(range, through: last) })
        let delivery = try destination.send(
            batch,
            from: reader,
            mayCost: { _, _ in true },
            until: StopSignal()
        )
        #expect(delivery.verdict == .accepted)
        return batch
    }

    private static func body(
        of batch: Batch,
        _ compression: Compression,
        _ reader: Reader
    ) throws -> [UInt8] {
        let body = try BatchBody(
            batch: batch,
            envelope: Envelope(streamName: "beacons", deviceID: "device"),
            compression: compression,
            reader: reader
        ).request()
        var bytes: [UInt8] = []
        while let piece = Optional(try body.read(atMost: .max)), !piece.isEmpty { bytes += piece }
        return bytes
    }

    @Test func timeThatAnAnswerTakes_isTimeForOtherWork() throws {
        let mayAnswer = DispatchSemaphore(value: 0)
        let server = try FaultyServer { _ in
            .play { client in
                mayAnswer.wait()
                let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".utf8)
                _ = write(client, answer, answer.count)
            }
        }
        defer { server.close() }
        var steps = 0
        let exchange = try Transport(
            TransportSettings(endpoint: server.endpoint, userAgent: "waypost/test")
        ).send(
            HTTPRequest(posting: RequestBody([1, 2, 3]), headers: []),
            meanwhile: {
                steps += 1
                if steps == 3 { mayAnswer.signal() }
                return steps < 3
            },
            until: StopSignal()
        )
        guard case .answered(let answer) = exchange else {
            Issue.record("\(exchange)")
            return
        }
        #expect(answer.status == 200)
        #expect(steps == 3)
    }

    @Test(arguments: [Compression.none, .gzip, .zstd])
    func bodiesMadeAhead_areTheBytesOfEachLaterTry(compression: Compression) throws {
        let queue = try queue()
        defer { queue.close() }
        let server = try FaultyServer { _ in .ok }
        defer { server.close() }
        let destination = try Self.destination(server, compression)
        let reader = try queue.reader()
        var batches: [Batch] = []
        while let batch = try sendNext(queue, destination, reader) {
            batches.append(batch)
            // No body follows the last one.
            #expect((destination.ahead == nil) == (batch.last == 2000))
        }
        #expect(batches.count > 5)
        #expect(batches.reduce(0) { $0 + $1.records } == 2000)
        for (batch, request) in zip(batches, server.requests) {
            #expect(try request.body == Self.body(of: batch, compression, reader))
        }
    }

    /// The clock was corrected, a budget changed the limit, or the database was replaced.
    @Test func bodyMadeAhead_forSomethingElse_isNotUsed() throws {
        let queue = try queue()
        defer { queue.close() }
        let server = try FaultyServer { _ in .ok }
        defer { server.close() }
        let destination = try Self.destination(server, .gzip)
        let (reader, other) = (try queue.reader(), try queue.reader())
        _ = try sendNext(queue, destination, reader)
        let range = try #require(queue.pending(.beacons))
        let last = try destination.lastRecord(of: range, limit: 10_000, from: reader)
        #expect(destination.ahead != nil)
        #expect(last < range.first + 100)
        _ = try destination.lastRecord(of: range, limit: Self.limit, from: other)
        #expect(destination.ahead != nil)
        var dated = range
        dated.clockMap += 1
        _ = try? destination.lastRecord(of: dated, limit: Self.limit, from: reader)
        #expect(destination.ahead != nil)
        _ = try destination.lastRecord(of: range, limit: Self.limit, from: reader)
        #expect(destination.ahead == nil)
        try destination.begin()
    }
}
