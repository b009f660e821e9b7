import Foundation
import Queue
import Records
import Support
import Testing

@testable import Gateway

/// What the reader of the data is told of the room there is.
@Suite struct StorageEventTests {
    /// A card that is nearly full is an event, once; the event says how full.
    @Test func littleRoom_isAnEvent() throws {
        let bench = try GatewayBench(change: {
            $0.storage.limits.warnFree = 1 << 60
            $0.storage.limits.criticalFree = 1 << 59
        })
        try waitUntil("a snapshot") { !bench.status.isEmpty }
        try waitUntil("the event") { Self.levels(bench) == ["critical"] }
        #expect(bench.fiveTicksPass())
        #expect(Self.levels(bench) == ["critical"])
        bench.stop()
    }

    /// Of the events of that kind, in order.
    private static func levels(_ bench: GatewayBench) -> [String] {
        let path = bench.configuration.databasePath
        guard let reader = try? Reader(path: path) else { return [] }
        var levels: [String] = []
        // To the first that is not there.
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
