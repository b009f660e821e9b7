// A gateway with a receiver that stores into a bucket, compared with one that writes there itself.
import Foundation
import Host
import HTTP
import Queue
import QueueSupport
import ReceiverSupport
import Records
import Support
import Testing
import Upload

@Suite struct BucketDeliveryTests {
    @Test func serverObjects_equalThoseWrittenByTheGateway() throws {
        let site = try BucketSite(faults: ["503", "503"])
        let receiver = try site.receiver()
        let queues = TemporaryFolder("own")
        // Both streams are frozen by a failed try; then two copies of the queue take different
        // paths.
        try withQueue(in: queues.path + "/own") { queue in
            try fill(queue)
            let own = bucket(site.store.access.url + "/own", site.store.access.keys)
            let isDone = try syncOnce(queue, own, maxBatchBytes: 8 << 20)
            #expect(!isDone)
        }
        try FileManager.default.copyItem(
            atPath: queues.path + "/own",
            toPath: queues.path + "/via"
        )
        try withQueue(in: queues.path + "/own") { queue in
            let own = bucket(site.store.access.url + "/own", site.store.access.keys)
            let isDone = try syncOnce(queue, own, maxBatchBytes: 8 << 20)
            #expect(isDone)
        }
        try withQueue(in: queues.path + "/via") { queue in
            let url = receiver.base.absoluteString + "/api/ingest"
            // The compression on the wire does not matter.
            let via = destination(url, compression: .zstd, "t")
            let isDone = try syncOnce(queue, via, maxBatchBytes: 8 << 20)
            #expect(isDone)
        }
        let contents = try site.store.contents()
        let own = contents.digests.under("own/")
        #expect(own == contents.digests.under("via/"))
        #expect(contents.objects.under("own/") == contents.objects.under("via/"))
        // Fixes, chunks of two kinds and their records.
        #expect(own.keys.count { $0.hasSuffix(".ndjson.gz") } == 2)
        #expect(own.keys.count { $0.hasSuffix(".wav") } == 2)
        #expect(own.keys.count { $0.hasSuffix(".ogg") } == 2)
    }

    private func withQueue(in folder: String, _ body: (Queue) throws -> Void) throws {
        let queue = try Queue(at: folder + "/q.sqlite")
        defer { queue.close() }
        try body(queue)
    }

    /// Adds more fixes than the gateway reads at once, and audio of two kinds.
    private func fill(_ queue: Queue) throws {
        let wall = try #require(WallTime(rfc3339: "2026-11-21T12:00:00.000Z"))
        let noon = Stamp(boot: SystemClock().now(), wall: wall)
        for number in 0..<700 {
            queue.accept(
                Fix(
                    stamp: noon.advanced(by: .milliseconds(number)),
                    mode: .twoDimensional,
                    latitude: Double.random(in: -80...80),
                    longitude: 7.5
                )
            )
        }
        for codec in [AudioCodec.wav, .opus] {
            let run = AudioRun(
                id: queue.newRunID(),
                codec: codec,
                rate: 16_000,
                device: "test",
                chunkSegments: 1,
                overlapSegments: 0
            )
            queue.begin(run)
            for number in 0..<2 {
                let packets = (0..<101).flatMap { _ in [3, 0, 8, UInt8(number), 1] as [UInt8] }
                // Too large to be sent from memory.
                let noise = (0..<900_000).map { _ in UInt8.random(in: 0...255) }
                queue.accept(
                    Segment(
                        run: run.id,
                        frames: 32_000,
                        start: noon.advanced(by: .milliseconds(number)),
                        meanSquare: 0.1,
                        data: codec == .opus ? packets : noise
                    )
                )
            }
            queue.end(run: run.id)
        }
    }

    private func destination(
        _ url: String,
        compression: Compression = .gzip,
        _ token: String
    ) -> DestinationSettings {
        DestinationSettings(
            transport: TransportSettings(endpoint: url, userAgent: "waypost/test"),
            deviceID: "device-1",
            streamNames: [.location: "places", .audio: "audio", .events: "events"],
            compression: compression,
            token: { token }
        )
    }

    private func bucket(_ url: String, _ keys: String) -> DestinationSettings {
        var settings = destination(url, keys)
        settings.region = "us-east-1"
        return settings
    }
}

extension [String: String] {
    /// The files below a folder, by relative path.
    fileprivate func under(_ folder: String) -> [String: String] {
        var found: [String: String] = [:]
        for (key, value) in self where key.hasPrefix(folder) {
            found[String(key.dropFirst(folder.count))] = value
        }
        return found
    }
}
