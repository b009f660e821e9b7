// The request of `waypost resend` and the gateway's answer.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import Support
import Testing

@testable import Daemon
@testable import Setup
@testable import Status

@Suite struct ResendRequestTests {
    private let time = WallTime(milliseconds: 1_795_235_407_000)

    @Test func request_roundTrips_andInvalidOnesAreRejected() throws {
        for request in [
            ResendRequest(since: time), ResendRequest(stream: "audio", since: time),
            ResendRequest(stream: "a b", since: time, until: time + .seconds(60)),
        ] {
            let line = request.control.json
            let heard = try #require(ControlRequest(line: line))
            #expect(heard.command == .resend)
            #expect(ResendRequest(argument: heard.argument ?? "") == request)
        }
        for text in ["", " ", "1", "1 x", "x -", "99999999999999999999 -", "1 2x audio"] {
            #expect(ResendRequest(argument: text) == nil, "\(text)")
        }
    }

    @Test func answer_countsMarkedRecords_andNamesTheStreams() throws {
        let temporary = TemporaryFolder()
        let queue = try Queue(at: temporary.path + "/q.sqlite")
        defer { queue.close() }
        let stamp = SystemClock().stamp()
        for _ in 0..<6 {
            queue.accept(Fix(stamp: stamp, mode: .twoDimensional, latitude: 1, longitude: 2))
        }
        let range = try #require(try queue.flushed().pending(.location))
        try queue.perform { writer in
            guard let batch = try writer.freeze(range, through: range.first + 3) else { return }
            try writer.uploaded(batch)
        }
        let desk = QueueRequestHandler(queue: queue, configuration: Configuration())
        func ask(_ stream: String?) -> ControlReply {
            desk.answer(ResendRequest(stream: stream, since: WallTime(milliseconds: 0)).control)
        }
        for name in [nil, "location", "linux_gpsd_location"] {
            #expect(ask(name).changed == QuarantineChange(batches: 1, records: 4))
        }
        #expect(ask("audio").changed == QuarantineChange())
        let unknown = try #require(ask("sound").error)
        #expect(unknown.contains("\"sound\" is not a stream of this device; use one of"))
        #expect(unknown.contains("beacons"))
        #expect(desk.answer(ControlRequest(.resend, "yesterday")).error != nil)
    }
}
