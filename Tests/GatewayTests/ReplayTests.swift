// A gateway replays a capture with a long pause.
import Beacons
import Foundation
import Setup
import Support
import Testing

import Daemon

@Suite struct ReplayTests {
    /// An iBeacon as an H4 packet.
    private static let packet: [UInt8] = [
        4, 0x3E, 42, 2, 1, 0, 1, 1, 0, 0, 0xEE, 0xFF, 0xC0, 30, 2, 1, 6, 0x1A, 0xFF, 0x4C, 0, 2,
        0x15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 0, 7, 0xC5, 0xC4,
    ]

    /// A btsnoop file with two packets, one hour apart.
    private static var capture: [UInt8] {
        var bytes = Array("btsnoop".utf8) + [0]
        bytes += number(1, 4) + number(1002, 4)
        for microseconds: UInt64 in [0, 3_600_000_000] {
            let length = number(UInt64(packet.count), 4)
            bytes += length + length
            bytes += number(0, 8) + number(microseconds, 8)
            bytes += packet
        }
        return bytes
    }

    private static func number(_ value: UInt64, _ count: UInt64) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    @Test func pauseOfACapture_isNoHang_andTheReplayGoesOn() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/capture"
        try Data(Self.capture).write(to: URL(fileURLWithPath: path))
        let fixture = try GatewayFixture(change: {
            $0.beacons.isEnabled = true
            $0.beacons.source = .capture(path: path)
        })
        defer { fixture.stop() }
        func beacons(_ key: String) -> Int {
            let sources = fixture.status["sources"] as? [String: [String: Any]]
            return sources?["beacons"]?[key] as? Int ?? -1
        }
        try waitUntil("the first sighting") { beacons("records") == 1 }
        // About three times the timeout.
        #expect(fixture.fiveTicksPass() && fixture.fiveTicksPass())
        #expect(fixture.errors == [])
        #expect(beacons("restarts") == 0)
        #expect(beacons("records") == 1)
    }
}
