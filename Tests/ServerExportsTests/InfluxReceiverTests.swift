// The whole receiver with an InfluxDB: killed, delayed, and with Debian's own.
import Foundation
import Glibc
import ReceiverSupport
import Support
import Testing

@testable import ServerExports

@Suite struct InfluxReceiverTests {
    private func health(_ receiver: ReceiverProcess) throws -> [String: Any] {
        let answer = try receiver.request(RawRequest.health)
        let json = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return try #require((json as? [String: Any])?["influx"] as? [String: Any])
    }

    private func waitUntilDone(_ receiver: ReceiverProcess) throws {
        try waitUntil("all forwarded", limit: .seconds(300)) {
            try health(receiver)["state"] as? String == "up_to_date"
        }
    }

    /// Sends a batch of records, each with its id as a field.
    private func send(_ receiver: ReceiverProcess, _ ids: [String], device: String = "d1") throws {
        let body = RawRequest.batch(
            ids,
            device: device,
            padding: #","n":"ID""#,
            numbersSources: true
        )
        #expect(try receiver.request(RawRequest.head(length: body.count), body).status == 200)
    }

    /// A proxy on this machine would see the token.
    @Test func influxOnThisMachine_isReachedWithoutAProxy() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let proxy = "http://127.0.0.1:\(freePort())"
        let receiver = try ReceiverProcess(
            ["--influx", influx.url],
            environment: ["http_proxy": proxy, "all_proxy": proxy]
        )
        try send(receiver, ["a"])
        try waitUntilDone(receiver)
        #expect(influx.points.count == 1)
    }

    @Test func receiverThatIsKilledAnywhere_givesEachRecordOnce() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let receiver = try ReceiverProcess(["--influx", influx.url])
        var sent = 0
        // During a send; after a store that is not recorded; while everything is refused.
        for (round, words) in ["hang", "cut", "503", "hang ok", "cut ok"].enumerated() {
            // Changed while the receiver is dead: otherwise it could wait a minute for a hanging
            // answer.
            let (points, requests) = (influx.points.count, influx.requests.count)
            try influx.does(words)
            if round > 0 { try receiver.start() }
            for batch in 0..<4 {
                let ids = (0..<50).map { "r\(round)-\(batch)-\($0)" }
                try send(receiver, ids, device: "d\(batch % 2)")
                sent += ids.count
            }
            let word = words.prefix { $0 != " " }
            try waitUntil("\(words)") {
                influx.requests.count > requests && (word != "cut" || influx.points.count > points)
            }
            receiver.kill()
        }
        try influx.does("ok")
        try receiver.start()
        try waitUntilDone(receiver)
        let stored = try influx.stored()
        #expect(stored.count == sent)
        #expect(Set(stored.values).count == sent)
        #expect(try health(receiver)["points"] as? Int == sent)
        // The checkpoint is stored: another start sends nothing again.
        let before = influx.points.count
        receiver.kill()
        try receiver.start()
        try send(receiver, ["last"])
        try waitUntil("the last") { influx.points.count > before }
        try waitUntilDone(receiver)
        #expect(influx.points.count == before + 1)
        #expect(try influx.stored().count == sent + 1)
        #expect(receiver.terminate() == 0)
    }

    @Test func hungServer_blocksNoGatewayOrStop_andFillsNoMemory() throws {
        let influx = try InfluxStub("hang")
        defer { influx.stop() }
        let receiver = try ReceiverProcess(["--influx", influx.url])
        let text = String(repeating: "y", count: 900)
        let padding = (0..<10).map { ",\"x\($0)\":\"\(text)\"" }.joined()
        for batch in 0..<10 {
            let ids = (0..<100).map { "b\(batch)-\($0)" }
            #expect(try receiver.send(ids: ids, padding: padding) == 200)
        }
        try waitUntil("a request") { !influx.requests.isEmpty }
        try receiver.expectService()
        #expect(receiver.terminate() == 0)
        // Another address, with a receiver that has time: it gets all points.
        let next = try InfluxStub("ok")
        defer { next.stop() }
        let second = try ReceiverProcess(["--influx", next.url], in: receiver.folder)
        try waitUntilDone(second)
        #expect(next.points.count == 1000)
        #expect(try second.residentPeak() < ReceiverProcess.residentLimit)
    }

    /// A proxy's 400, or a wrong organisation: the message does not mention points.
    @Test func refusingServer_costsNoPoint_beforeOrAfterASuccess() throws {
        let influx = try InfluxStub("400")
        defer { influx.stop() }
        let receiver = try ReceiverProcess(["--influx", influx.url])
        for ids in [["a", "b", "c"], ["d"]] {
            try influx.does("400")
            let before = influx.requests.count
            try send(receiver, ids)
            try waitUntil("tries") { influx.requests.count > before + 2 }
            try influx.does("ok")
            try waitUntilDone(receiver)
        }
        #expect(try influx.stored().count == 4)
        #expect(try health(receiver)["refused"] as? Int == 0)
    }

    /// The very first point: nothing shows yet that the server accepts anything.
    @Test func firstPointThatIsRefused_stopsTheRestNoLonger() throws {
        let influx = try InfluxStub("odd")
        defer { influx.stop() }
        let receiver = try ReceiverProcess(["--influx", influx.url])
        try send(receiver, ["bad"])
        try waitUntil("a try") { try health(receiver)["state"] as? String == "waiting" }
        try send(receiver, ["good"])
        try waitUntilDone(receiver)
        #expect(try influx.stored().count == 1)
        #expect(try health(receiver)["refused"] as? Int == 1)
    }

    @Test func damagedMarks_areMadeAnew() throws {
        let influx = try InfluxStub("ok")
        defer { influx.stop() }
        let receiver = try ReceiverProcess(["--influx", influx.url])
        try send(receiver, ["a", "b"])
        try waitUntilDone(receiver)
        #expect(receiver.terminate() == 0)
        let book = InfluxBook.path(in: receiver.folder)
        for end in ["-wal", "-shm"] { unlink(book + end) }
        try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: book))
        try receiver.start()
        try send(receiver, ["c"])
        try waitUntil("all once more") { influx.points.count == 5 }
        #expect(try influx.stored().count == 3)
    }

    @Test func wrongOptions_areReportedAtStart() throws {
        for arguments in [
            ["--influx", "http://h/"], ["--influx", "http://anna:x@h/write?db=w"],
            ["--influx", "http://h/write?db=w", "--influx-token-file", "/none"],
        ] {
            let outcome = try Process.run(
                Tree.program("waypost-receiver"),
                arguments + ["--summary"]
            )
            #expect(outcome.status == 64, "\(arguments)")
            #expect(outcome.error.contains("--influx takes"), "\(outcome.error)")
        }
    }
}
