// The uploader with a receiver that loses, refuses and cuts uploads.
import Foundation
import HTTP
import Host
import Queue
import QueueSupport
import ReceiverSupport
import Records
import Support
import Testing
import Upload

@Suite struct TormentTests {
    /// `WAYPOST_TORMENT_SEEDS`: how many; a thousand take some minutes.
    private static let seeds =
        ProcessInfo.processInfo.environment["WAYPOST_TORMENT_SEEDS"].flatMap { UInt64($0) } ?? 12

    private func makeQueue(in folder: TemporaryFolder, _ clock: ManualClock) throws -> Queue {
        let queue = try Queue(at: folder.database, bootID: "boot", clock: clock)
        try queue.perform { try $0.recordClock(clock.stamp(), synced: true, by: .kernel) }
        for number in 0..<90 {
            queue.accept(
                Fix(
                    stamp: clock.stamp(),
                    mode: .twoDimensional,
                    latitude: Double(number) / 1000,
                    longitude: 7.5
                )
            )
            clock.advance(by: .seconds(1))
        }
        _ = try queue.flushed()
        return queue
    }

    /// A client that does not upload before the portal is gone comes out of it.
    @Test func verify_usesThePortalUp() throws {
        let receiver = try ReceiverProcess(["--torment", "1"])
        let (transport, stop) = (try Transport(receiver.transport), try StopSignal())
        func isPage(_ path: String) -> Bool {
            let request = HTTPRequest(
                posting: RequestBody(Array("{}".utf8)),
                headers: ["X-Device-Token: t"],
                to: receiver.base.absoluteString + path
            )
            guard case .answered(let answer) = transport.send(request, until: stop) else {
                return false
            }
            return answer.isPage
        }
        try #require((0..<2000).contains { _ in isPage("/api/ingest") })
        // A mood lasts 6 requests at most.
        #expect((0..<6).contains { _ in !isPage("/api/device/verify") })
    }

    /// Every record is at the server, and each once, or in quarantine after verdicts of the server.
    @Test(arguments: 0..<seeds) func seed_losesAndDoublesNothing(seed: UInt64) throws {
        let receiver = try ReceiverProcess(["--torment", "\(seed)"])
        let clock = ManualClock(
            Stamp(boot: BootInstant(nanoseconds: 5_000_000_000), wall: SystemClock().wall())
        )
        let folder = TemporaryFolder("torment")
        let queue = try makeQueue(in: folder, clock)
        defer { queue.close() }
        let settings = DestinationSettings(
            transport: receiver.transport,
            deviceID: "device-1",
            streamNames: [.location: "places", .events: "events"],
            token: { "secret" }
        )
        var syncs = 0
        while try !syncOnce(queue, settings, maxBatchBytes: 4000) {
            syncs += 1
            try #require(syncs < 400, "seed \(seed) does not come to an end")
            clock.advance(by: .seconds(3600))
        }
        let ids = try receiver.records("places").compactMap { $0["id"] as? String }
        let figures = try queue.flushed().statistics().first { $0.stream == .location }
        let held = Int(try #require(figures).quarantined)
        #expect(Set(ids).count == ids.count, "seed \(seed)")
        #expect(ids.count + held == 90, "seed \(seed): \(ids.count) arrived, \(held) are held")
    }
}
