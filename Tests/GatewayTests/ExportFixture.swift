// A real database with records, and exports from it.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import Support

@testable import Field
import Setup

/// A queue whose records are exported.
final class ExportFixture {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    var configuration = Configuration()
    let queue: Queue
    let clock = ManualClock(
        Stamp(
            boot: BootInstant(nanoseconds: 1_000_000_000_000),
            wall: WallTime(milliseconds: 1_795_235_400_000)
        )
    )

    init() throws {
        configuration.stateDirectory = temporary.path
        queue = try Queue(at: Configuration.databasePath(in: temporary.path), clock: clock) {
            $0.userStreams = [DeclaredStream(name: "weather", wire: "site_weather")]
        }
    }

    deinit {
        queue.close()
    }

    /// Records a fix every ten seconds.
    func walk(_ count: Int) throws {
        for number in 0..<count {
            var fix = Fix(
                stamp: clock.stamp(),
                mode: .threeDimensional,
                latitude: 48 + Double(number) / 1000,
                longitude: 11
            )
            fix.altitude = 500
            fix.speed = 1.25
            queue.accept(fix)
            clock.advance(by: .seconds(10))
        }
        try queue.flushed()
    }

    func export(
        _ stream: String,
        _ format: ExportFormat,
        _ change: (inout ExportRequest) -> Void = { _ in }
    ) throws -> (text: String, outcome: ExportOutcome) {
        var request = ExportRequest(stream: stream, format: format)
        request.output = folder + "/out"
        change(&request)
        let outcome = try Export(request, configuration).run()
        let text = try? String(contentsOfFile: folder + "/out", encoding: .utf8)
        return (text ?? "", outcome)
    }

    /// Records chunks of three segments, none of them shared.
    func record(chunks: Int, device: String = "mic") throws {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 8000,
            device: device,
            chunkSegments: 3,
            overlapSegments: 0
        )
        queue.begin(run)
        for number in 0..<(3 * chunks) {
            let data = [UInt8](repeating: UInt8(number), count: 16_000)
            let stamp = clock.stamp()
            queue.accept(
                Segment(run: run.id, frames: 8000, start: stamp, meanSquare: 0.01, data: data)
            )
            clock.advance(by: .seconds(1))
        }
        queue.end(run: run.id)
        try queue.flushed()
    }
}

extension ExportFixture {
    /// Records chunks of 40 ms, each of one Opus packet twice.
    func record(opus packets: [[UInt8]]) throws {
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .opus,
            rate: 16_000,
            device: "mic",
            chunkSegments: 1,
            overlapSegments: 0
        )
        queue.begin(run)
        for packet in packets {
            let stored = [UInt8(packet.count), 0] + packet
            let stamp = clock.stamp()
            queue.accept(
                Segment(
                    run: run.id,
                    frames: 640,
                    start: stamp,
                    meanSquare: 0.01,
                    data: stored + stored
                )
            )
            clock.advance(by: .milliseconds(40))
        }
        queue.end(run: run.id)
        try queue.flushed()
    }
}

/// Parses lines of JSON objects.
func objects(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map {
        try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
    }
}
