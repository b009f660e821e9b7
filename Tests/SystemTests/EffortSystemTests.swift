// When the sources of a real gateway were listening, through kills and stops.
import Foundation
import SQLite
import Support
import Testing

extension Device {
    /// The spans of all sources that are not records yet, as the queue stores them.
    func effortMemo() throws -> String {
        let database = try Connection(path: folder + "/state/queue.sqlite", access: .readOnly)
        let row = try database.prepare("SELECT value FROM memos WHERE name='effort'")
        return try row.step() ? row.text(0) : ""
    }
}

@Suite struct EffortSystemTests {
    /// A device whose radio is absent.
    private final class Station: Device {
        /// An interval that is stored or still in the memo; times of the boot in ms.
        struct Span: Equatable {
            var state: String
            var from: Int64
            /// nil in the memo, where it ends with the next one.
            var to: Int64?
        }

        init(more: String = "") throws {
            try super.init(
                """
                [upload]
                required = false
                [beacons]
                source = "h4:127.0.0.1:1"
                [location]
                enabled = false
                [audio]
                enabled = false
                [stream.weather]
                \(more)
                """
            )
        }

        private func open() throws -> Connection {
            try Connection(path: folder + "/state/queue.sqlite", access: .readOnly)
        }

        /// The spans of the radio: the records, then the memo.
        func spans() throws -> [Span] {
            let database = try open()
            let rows = try database.prepare(
                """
                SELECT state, from_boottime, to_boottime FROM effort WHERE source='beacons'
                ORDER BY id
                """
            )
            var spans: [Span] = []
            while try rows.step() {
                spans.append(
                    Span(state: rows.text(0), from: rows.required(1), to: rows.required(2))
                )
            }
            return try spans
                + effortMemo().split(separator: "\n").compactMap { line in
                    let words = line.split(separator: " ")
                    guard words.count >= 5, let time = Int64(words[1]), Int64(words[3]) == nil
                    else {
                        return nil
                    }
                    return Span(state: String(words[3]), from: time / 1_000_000)
                }
        }

        /// When the newest event was stored.
        func newest() throws -> Int64 {
            let database = try open()
            return try database.integer("SELECT max(boottime) FROM events") ?? 0
        }

        /// Waits until the radio failed, and until that is on disk.
        func waitUntilFailed() throws {
            try waitUntil("the radio failed") {
                try source("beacons")["state"] as? String == "error"
            }
            // A commit that happens anyway.
            let put = try run("put", "weather", input: "{}\n")
            #expect(put.status == 0, "\(put.error)")
        }

        func states() throws -> [String] { try spans().map(\.state) }
    }

    @Test func killAndStop_tileTheTime() throws {
        let station = try Station()
        try station.start()
        try station.waitUntilFailed()
        try waitUntil("the account") { try station.states() == ["failed"] }
        station.killDaemon()
        let last = try station.newest()

        try station.start()
        try station.waitUntilFailed()
        try waitUntil("the account goes on") { try station.states().suffix(1) == ["failed"] }
        #expect(try station.states() == ["failed", "unknown", "failed"])
        // Nothing is known from the last record on.
        #expect(try #require(try station.spans().dropFirst().first).from >= last)
        #expect(try station.stop() == 0)
        #expect(try station.states() == ["failed", "unknown", "failed", "off"])

        try station.start()
        try station.waitUntilFailed()
        try waitUntil("the account goes on") { try station.states().suffix(1) == ["failed"] }
        let spans = try station.spans()
        #expect(spans.map(\.state) == ["failed", "unknown", "failed", "off", "failed"])
        for (left, right) in zip(spans, spans.dropFirst()) {
            #expect(left.from < right.from)
            #expect(left.to ?? right.from == right.from)
        }
        #expect(try station.stop() == 0)
    }

    @Test func serverThatDoesNotKnowTheStream_getsNone() throws {
        let station = try Station(more: "[effort]\nenabled = false")
        try station.start()
        try station.waitUntilFailed()
        #expect(try station.stop() == 0)
        #expect(try station.effortMemo().isEmpty)
    }
}
