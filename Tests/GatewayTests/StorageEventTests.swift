import Foundation
import Queue
import Records
import Setup
import Support
import Testing

import Daemon

/// Events about free space, for the reader of the data.
@Suite struct StorageEventTests {
    /// A nearly full card causes one event with its level.
    @Test func littleRoom_isAnEvent() throws {
        let fixture = try GatewayFixture(change: {
            $0.storage.limits.warnFree = 1 << 60
            $0.storage.limits.criticalFree = 1 << 59
        })
        try waitUntil("a snapshot") { !fixture.status.isEmpty }
        try waitUntil("the event") { Self.levels(fixture) == ["critical"] }
        #expect(fixture.fiveTicksPass())
        #expect(Self.levels(fixture) == ["critical"])
        fixture.stop()
    }

    /// Returns the details of the events of that kind, in order.
    private static func levels(_ fixture: GatewayFixture) -> [String] {
        let path = fixture.configuration.databasePath
        guard let reader = try? Reader(path: path) else { return [] }
        var levels: [String] = []
        // Reads up to the first missing event.
        try? reader.rows(Event.kind, 1...1000) { stored in
            guard case .text(let kind) = stored.record.values[0], kind == "storage_low",
                case .text(let detail) = stored.record.values[2],
                let object = try? JSONSerialization.jsonObject(with: Data(detail.utf8)),
                let level = (object as? [String: Any])?["level"] as? String
            else { return }
            levels.append(level)
        }
        return levels
    }
}
