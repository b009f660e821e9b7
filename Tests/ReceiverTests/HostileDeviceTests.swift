// A hostile device cannot affect another device's records or break readers of the files.
import Foundation
import ReceiverSupport
import Support
import Testing

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

    /// Its ids would be new ones, and all that devices repeat would be stored twice.
    @Test func folderOfADevelopmentVersion_isRefusedAtTheStart() throws {
        let receiver = try ReceiverProcess()
        _ = try send(receiver, "d1", ["a"])
        #expect(receiver.terminate() == 0)
        try receiver.sql("CREATE TABLE records(id TEXT, device INTEGER, PRIMARY KEY (id, device))")
        let outcome = try Process.run(
            Tree.program("waypost-receiver"),
            ["--listen", "127.0.0.1:0", "--data", receiver.folder]
        )
        #expect(outcome.status != 0)
        #expect(outcome.error.contains("\(receiver.folder) is of a development version"))
        #expect(outcome.error.contains("choose another --data"))
    }

    // MARK: The cost of a request

    /// A line end in a record costs as much as any other byte.
    @Test func lineEndsInARecord_costNoMoreThanBlanks() throws {
        let receiver = try ReceiverProcess()
        func cost(_ separator: String) throws -> Double {
            let list = String(repeating: "1" + separator, count: 1 << 20) + "1"
            let body = RawRequest.batch([UUID().uuidString], padding: #","list":[\#(list)]"#)
            let before = try receiver.processorSeconds()
            let answer = try post(receiver, Array(gzip(Data(body))), encoding: "gzip")
            #expect(answer?.status == 200)
            return try receiver.processorSeconds() - before
        }
        let blanks = try cost(" ,")
        let lines = try cost("\n,")
        #expect(lines < 2 * blanks, "\(lines) s, with blanks \(blanks) s")
        #expect(try receiver.records("places").count == 2)
    }

    // MARK: Stored records

    private static let nested16 =
        String(repeating: #"{"a":["#, count: 7) + #"{"a":1}"# + String(repeating: "]}", count: 7)

    /// Members and a word of the refusal; outside the macro, on which Swift 6.0.3 crashes.
    private static let broken: [(member: String, reason: String)] = [
        (#""v":1,"v":2"#, "twice"), (#""v":1,"\u0076":2"#, "twice"), (#""v":1,"V":2"#, "twice"),
        (#""o":{"v":1,"n":0,"v":2}"#, "twice"), (#""o":[{"x":{"vEl":1,"Vel":2}}]"#, "twice"),
        (#""id":"other""#, "twice"), (#""ID":"other""#, "twice"),
        (#""o":\#(String(repeating: "[", count: 16) + String(repeating: "]", count: 16))"#, "16"),
        (#""o":[\#(nested16)]"#, "16"),
        (#""o":\#(String(repeating: "[", count: 500) + String(repeating: "]", count: 500))"#, "16"),
        (#""":1"#, "name"),
        (
            #""audio_data":"T2dnUw==","audio_format":"ogg","audio_file":"x""#, "audio_file"
        ),
        ((0..<5000).map { #""m\#($0)":1"# }.joined(separator: ","), "members"),
    ]

    @Test(arguments: broken)
    func recordThatBreaksReaders_isRefused(member: String, reason: String) throws {
        let receiver = try ReceiverProcess()
        let good = #"{"id":"good","timestamp":"2026-11-21T04:30:07Z"}"#
        let bad = #"{"id":"bad","timestamp":"2026-11-21T04:30:07Z",\#(member)}"#
        let body = """
            {"stream_name":"places","device_id":"d1","data":[\(good),\(bad),\(good)],
            "batch_metadata":{"total_records":3}}
            """
        let answer = try post(receiver, Array(body.utf8))
        #expect(answer?.status == 422)
        let said = answer?.body ?? ""
        #expect(said.contains("record 1: ") && said.contains(reason), "\(said)")
        #expect(try receiver.records("places").isEmpty)
    }

    @Test func recordsUpToTheLimits_areStored() throws {
        let receiver = try ReceiverProcess()
        let members = [
            #""o":\#(Self.nested16)"#,
            #""o":{"v":1},"p":{"v":1,"o":{"v":2}},"l":[{"v":1},{"v":1}]"#,
            #""é":1,"É":2"#, #""t":"v","u":"V","audio_file":"x""#,
            (0..<4000).map { #""m\#($0)":1"# }.joined(separator: ","),
        ]
        for (index, member) in members.enumerated() {
            let body = RawRequest.batch(["r\(index)"], padding: "," + member)
            let answer = try post(receiver, body)
            #expect(answer?.status == 200, "\(answer?.body ?? "")")
        }
        #expect(try receiver.records("places").count == members.count)
    }
}
