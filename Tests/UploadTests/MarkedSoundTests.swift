// A day of sound over a metered link: what is marked arrives that day, and the rest as the budget allows.
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing

@testable import Upload

@Suite struct MarkedSoundTests {
    private static let sound = SoundUpload(.marked, markingStreams: ["birds"])
    /// Seconds in a chunk; 90 kB as sent, as half a minute of Opus at 24 kb/s is.
    private static let chunk = 30
    private static let chunkBytes = 90_000
    /// Of five minutes, until the last one of a day.
    private static let ticks = 287

    /// A site: what it recorded, and what its server has.
    private final class Site {
        let fixture: BudgetFixture
        private var run = AudioRun(id: 0, codec: .wav, rate: 1125, device: "mic")
        private(set) var second = 0
        private(set) var detections: [Int] = []

        init(_ settings: UploadSettings, _ behaviour: @escaping @Sendable (Request) -> Behaviour)
            throws
        {
            fixture = try BudgetFixture(settings, sound: MarkedSoundTests.sound, behaviour)
            begin()
        }

        private func begin() {
            run.id = fixture.queue.newRunID()
            (run.chunkSegments, run.overlapSegments) = (1, 0)
            fixture.queue.begin(run)
        }

        func restart() throws {
            try fixture.restart()
            begin()
        }

        /// Records some minutes, with detections at the given seconds of the day; then comes a tick.
        func pass(minutes: Int, detecting: [Int] = []) throws {
            for _ in 0..<(minutes * 60 / MarkedSoundTests.chunk) {
                let start = fixture.clock.stamp()
                fixture.clock.advance(by: .seconds(MarkedSoundTests.chunk))
                let frames = run.rate * MarkedSoundTests.chunk
                fixture.queue.accept(
                    Segment(
                        run: run.id,
                        frames: frames,
                        start: start,
                        meanSquare: 0.1,
                        data: [UInt8](repeating: 7, count: frames * 2)
                    )
                )
                let end = second + MarkedSoundTests.chunk
                for moment in detecting where (second..<end).contains(moment) {
                    detect(at: start.advanced(by: .seconds(moment - second)))
                    detections.append(moment)
                }
                second = end
            }
            addFixes(10, to: fixture.queue)
            try fixture.queue.flushed()
            _ = fixture.sync.perform(.tick)
        }

        private func detect(at stamp: Stamp) {
            let record = UserRecord(stream: "birds", stamp: stamp, members: Array(#""n":1"#.utf8))
            fixture.queue.put([record]) { error in #expect(error == nil) }
        }

        /// The chunks that detections have marked, by number from 0.
        var marked: Set<Int> {
            let margin = Int(MarkedSoundTests.sound.margin / .seconds(1))
            return Set(
                detections.flatMap { moment in
                    // A chunk that begins with the last millisecond of a mark is part of it.
                    let first = max(0, moment - margin) / MarkedSoundTests.chunk
                    return first...((moment + margin) / MarkedSoundTests.chunk)
                }
            )
        }

        var figures: StreamStatistics? {
            fixture.queue.statistics().first { $0.stream == .audio }
        }

        /// The chunks that the server took, in its order, by number from 0.
        func received(_ requests: [Request]) throws -> [Int] {
            try requests.flatMap { request -> [Int] in
                let body = try #require(
                    try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
                )
                guard body["stream_name"] as? String == "audio" else { return [] }
                let records = try #require(body["data"] as? [[String: Any]])
                return try records.map { record in
                    let time = try #require(
                        (record["timestamp_start"] as? String).flatMap { WallTime(rfc3339: $0) }
                    )
                    let past = time.milliseconds - BudgetFixture.midnight.milliseconds
                    return Int(past) / 1000 / MarkedSoundTests.chunk
                }
            }
        }
    }

    /// 300 detections, in twenty visits, half of them at dawn; kills, and answers that are lost.
    @Test func aDay_bringsEachDetectionAndAnHourThatIsAskedFor() throws {
        let budget = 20_000_000
        let accepted = Locked([Request]())
        let asked = Locked(0)
        let site = try Site(.budget(Int64(budget))) { request in
            let number = asked.update {
                $0 += 1; return $0
            }
            accepted.update { $0.append(request) }
            // The server has it, and the device does not know.
            return number % 40 == 0 ? .cut : .ok
        }
        defer { site.fixture.finish() }
        var chance = SystemRandomNumberGenerator()
        let visits = (0..<20).map { visit in
            visit < 10
                ? 4 * 3600 + visit * 600 : Int.random(in: 7 * 3600..<20 * 3600, using: &chance)
        }
        let detections = visits.flatMap { start in (0..<15).map { start + 2 * $0 } }
        #expect(detections.count == 300)
        for tick in 0..<Self.ticks {
            if tick % 37 == 36 { try site.restart() }
            if tick == 21 * 12 {
                let from = BudgetFixture.midnight + .seconds(2 * 3600)
                let marked = try site.fixture.queue.perform {
                    try $0.markSound(from: from, to: from + .seconds(3599))
                }
                #expect(marked == 120)
            }
            try site.pass(minutes: 5, detecting: detections)
            // At each tick all that was detected before is there, but for what fails now.
            if tick == 21 * 12 + 1 { #expect(site.figures?.pending == 0) }
        }
        let hour = Set(240..<360)
        let wanted = site.marked.union(hour)
        let received = try site.received(accepted.value)
        print(
            "marked \(site.marked.count) chunks, received \(Set(received).count) for \(site.fixture.bodies) bytes"
        )
        #expect(Set(received) == wanted)
        #expect(site.figures?.pending == 0 && site.figures?.uploaded == wanted.count)
        #expect(site.figures?.held == Self.ticks * 10 - wanted.count)
        #expect(site.fixture.bodies <= budget)
    }

    /// The rest of each hour's share goes to what nobody has marked, the newest first.
    @Test func budgetThatIsFilled_leavesLaterMarksTheirShare() throws {
        let budget = 20_000_000
        let accepted = Locked([Request]())
        let site = try Site(.budget(Int64(budget)) { $0.fillsBudget = true }) { request in
            accepted.update { $0.append(request) }
            return .ok
        }
        defer { site.fixture.finish() }
        let detections = [10 * 3600, 23 * 3600 + 1800]
        for _ in 0..<Self.ticks { try site.pass(minutes: 5, detecting: detections) }
        let received = try site.received(accepted.value)
        #expect(Set(received).isSuperset(of: site.marked))
        #expect(received.count == Set(received).count)
        let bytes = site.fixture.bodies
        print("filled with \(received.count) chunks, \(bytes) bytes")
        #expect(bytes > budget * 9 / 10 && bytes <= budget)
        // By noon it may have had half of the day's.
        let noon = received.filter { $0 < 12 * 120 }.count
        #expect(noon * Self.chunkBytes < budget * 6 / 10)
    }
}
