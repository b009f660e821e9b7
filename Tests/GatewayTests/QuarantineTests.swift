// The requests and the output of `waypost quarantine`.
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

@Suite struct QuarantineDeskTests {
    private func entry(_ message: String, stream: String = "beacons") -> QuarantinePage.Entry {
        QuarantinePage.Entry(
            number: 7,
            key: "22222222-2222-4222-8222-222222222222",
            stream: stream,
            records: 1,
            quarantinedAt: "2026-11-21T04:30:07.000Z",
            attempts: 2,
            message: message,
            firstId: "00010203-0405-8607-8809-010000000001"
        )
    }

    @Test func list_fits80Columns_andStripsControlCharacters() {
        let hostile = String(repeating: "a\u{1B}[2J\u{202E}b\r\n\u{9B}c ", count: 60)
        let text = QuarantineList([
            entry(hostile, stream: String(repeating: "long", count: 30)),
            entry(String(repeating: "x", count: 400)), entry("HTTP 422: bad longitude"),
        ]).text
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.allSatisfy { $0.unicodeScalars.count <= 80 })
        #expect(text.unicodeScalars.allSatisfy { $0.value == 10 || $0.value >= 32 })
        #expect(!text.unicodeScalars.contains { $0.value == 0x202E })
        for part in [
            "7 ", "beacons", "2026-11-21 04:30", "HTTP 422: bad longitude", "22222222-2222-4222",
            "00010203-0405-8607-8809-010000000001",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        #expect(QuarantineList([]).text == "nothing in quarantine\n")
    }

    /// Five thousand refusals with one message are one line; five thousand messages are cut for a
    /// terminal.
    @Test func floodOfRefusals_isReportedInFewLines() {
        func batches(_ words: (Int) -> String) -> [QuarantinePage.Entry] {
            (1...5000).map { number in
                var one = entry(words(number))
                one.number = Int64(number)
                return one
            }
        }
        let same = QuarantineList(batches { _ in "HTTP 400: no" } + [entry("HTTP 422: other")]).text
        #expect(same.split(separator: "\n").count < 12)
        let records = 4999 * entry("").records
        #expect(same.contains("and 4999 more like this one, up to 5000: \(records) records\n"))
        #expect(same.contains("HTTP 422: other"))
        let many = QuarantineList(batches { "HTTP 400: record \($0)" }).text
        #expect(many.hasSuffix("and 4900 more batches: --json has all of them\n"))
        #expect(many.split(separator: "\n").count < 500)
    }

    @Test func listAsJSON_hasEveryField() throws {
        let json = QuarantineList([entry("a \"word\"")]).json
        let object = try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]
        let batch = try #require((object?["batches"] as? [[String: Any]])?.first)
        #expect(
            Set(batch.keys) == [
                "number", "key", "stream", "records", "quarantined_at", "attempts", "words",
                "first_id",
            ]
        )
        #expect(batch["words"] as? String == "a \"word\"")
    }

    @Test func desk_finds_byNumberAndKey_andSaysWhenThereIsNone() throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let queue = try Queue(at: folder + "/q.sqlite")
        defer { queue.close() }
        let stamp = SystemClock().stamp()
        for _ in 0..<120 {
            queue.accept(Fix(stamp: stamp, mode: .twoDimensional, latitude: 1, longitude: 2))
        }
        while let range = try queue.flushed().pending(.location) {
            try queue.perform { writer in
                guard let batch = try writer.freeze(range, through: range.first) else { return }
                try writer.quarantine(batch, message: String(repeating: "é", count: 400))
            }
        }
        let desk = QueueRequestHandler(queue: queue, configuration: Configuration())
        let reply = desk.answer(.init(.quarantineList))
        let page = try #require(ControlReply(line: reply.json)?.quarantine)
        #expect(page == reply.quarantine)
        #expect(page.batches.count == 50)
        #expect(page.more)
        let (first, second) = (page.batches[0], page.batches[1])
        #expect(desk.answer(.init(.requeue, "\(first.number)")).changed?.records == 1)
        #expect(desk.answer(.init(.drop, second.key.uppercased())).changed?.records == 1)
        for id in ["\(first.number)", second.key, "", "0", "-1", "x", "99999999999999999999"] {
            let error = desk.answer(.init(.drop, id)).error
            #expect(error?.contains("quarantine list") == true)
        }
        let all = desk.answer(.init(.requeue, "all")).changed
        #expect(all == QuarantineChange(batches: 118, records: 118))
        #expect(desk.answer(.init(.quarantineList)).quarantine?.batches.isEmpty == true)
    }
}
