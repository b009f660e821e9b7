// What one device sends, however wrong, takes nothing from another device and breaks no reader of the files.
import Foundation
import Support
import Testing

@testable import Ingest

@Suite struct HostileDeviceTests {
    private func post(
        _ receiver: ReceiverProcess,
        _ body: [UInt8],
        encoding: String? = nil
    ) throws -> RawClient.Answer? {
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, encoding: encoding))
        client.send(body)
        return client.answer(within: 5)
    }

    private func send(_ receiver: ReceiverProcess, _ device: String, _ ids: [String]) throws
        -> String
    {
        try post(receiver, RawRequest.batch(ids, device: device))?.body ?? "no answer"
    }

    // MARK: Ids

    @Test func idsOfAnotherDevice_suppressNothing() throws {
        let receiver = try ReceiverProcess()
        #expect(try send(receiver, "d1", ["a", "b"]).contains(#""accepted":2"#))
        let own = try send(receiver, "d2", ["a", "b", "c"])
        #expect(own.contains(#""accepted":3"#) && own.contains(#""duplicates":0"#), "\(own)")
        let again = try send(receiver, "d2", ["c", "a"])
        #expect(again.contains(#""accepted":0"#) && again.contains(#""duplicates":2"#), "\(again)")
        for (device, lines) in [("d1", 2), ("d2", 3)] {
            let path = "\(receiver.folder)/stream=places/date=2026-11-21/device=\(device)"
            let text = try String(contentsOfFile: path + "/records.ndjson", encoding: .utf8)
            #expect(text.split(separator: "\n").count == lines)
        }
    }

    /// Before, ids were unique over all devices; the files say whose each was.
    @Test func indexOfAnEarlierVersion_learnsWhoseItsIdsAre() throws {
        let receiver = try ReceiverProcess()
        _ = try send(receiver, "d1", ["a", "b"])
        let late = RawRequest.batch(["gone"], device: "d1", time: "2026-11-22T04:30:07Z")
        #expect(try post(receiver, late)?.status == 200)
        #expect(receiver.terminate() == 0)
        // Archived away: whose it was nobody knows any more.
        let away = receiver.folder + "/stream=places/date=2026-11-22"
        try FileManager.default.removeItem(atPath: away)
        for statement in [
            "CREATE TABLE before(id TEXT PRIMARY KEY) WITHOUT ROWID",
            "INSERT INTO before SELECT id FROM records", "DROP TABLE records",
            "DROP TABLE IF EXISTS owners", "ALTER TABLE before RENAME TO records",
        ] { try receiver.sql(statement) }
        for _ in 0..<2 {
            try receiver.start()
            let own = try send(receiver, "d1", ["a", "b", "gone"])
            #expect(own.contains(#""duplicates":3"#), "\(own)")
            #expect(receiver.terminate() == 0)
        }
        try receiver.start()
        let other = try send(receiver, "d2", ["a", "b", "gone"])
        #expect(
            other.contains(#""accepted":2"#) && other.contains(#""duplicates":1"#),
            "\(other)"
        )
    }
}
