// Ingest over HTTP, with the real program.
import Foundation
import FoundationNetworking
import ReceiverSupport
import Support
import Testing

@Suite struct IngestTests {
    @Test func files_areForTheirGroup_andNobodyElse() throws {
        let receiver = try ReceiverProcess()
        let sound = #","audio_data":"AAAA","audio_format":"wav""#
        #expect(try receiver.send(ids: ["a"], padding: sound) == 200)
        _ = try PageClient(receiver, viewer: "anna").page(with: "d1")
        let names = FileManager.default.enumerator(atPath: receiver.folder)?.allObjects ?? []
        #expect(names.count > 10)
        for name in [""] + names.compactMap({ $0 as? String }) {
            let path = receiver.folder + "/" + name
            // SQLite may delete its journal at any time.
            guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else {
                continue
            }
            let mode = facts[.posixPermissions] as? Int ?? 0o777
            #expect(mode & 0o027 == 0, "\(name) has \(String(mode, radix: 8))")
        }
    }

    private static func batch(
        _ ids: [String],
        stream: String = "places",
        device: String = "d1",
        key: String = UUID().uuidString,
        total: Int? = nil,
        extra: String = ""
    ) -> (key: String, body: Data) {
        let records = ids.map {
            #"{"id":"\#($0)","timestamp":"2026-11-21T04:30:07.123Z","value":1.50\#(extra)}"#
        }
        let body = """
            {"stream_name":"\(stream)","device_id":"\(device)","data":[\(records.joined(separator: ", "))],
            "batch_metadata":{"total_records":\(total ?? ids.count),"batch_id":"\(key)"}}
            """
        return (key, Data(body.utf8))
    }

    private func post(
        _ receiver: ReceiverProcess,
        _ batch: (key: String, body: Data),
        encoding: String? = nil,
        token: String? = "t",
        path: String = "api/ingest",
        method: String = "POST"
    ) async throws -> (status: Int, reply: [String: Any]) {
        var request = URLRequest(url: receiver.base.appendingPathComponent(path))
        request.httpMethod = method
        if method == "POST" { request.httpBody = batch.body }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("\"\(batch.key)\"", forHTTPHeaderField: "Idempotency-Key")
        if let token { request.setValue(token, forHTTPHeaderField: "X-Device-Token") }
        if let encoding { request.setValue(encoding, forHTTPHeaderField: "Content-Encoding") }
        let (data, response) = try await URLSession.shared.data(for: request)
        let reply = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, reply ?? [:])
    }

    /// Returns only the status, for a request that races with the end of the receiver.
    private static func status(_ base: URL, _ batch: (key: String, body: Data)) async throws -> Int
    {
        var request = URLRequest(url: base.appendingPathComponent("api/ingest"))
        request.httpMethod = "POST"
        request.httpBody = batch.body
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("\"\(batch.key)\"", forHTTPHeaderField: "Idempotency-Key")
        request.setValue("t", forHTTPHeaderField: "X-Device-Token")
        let (_, response) = try await URLSession.shared.data(for: request)
        return (response as? HTTPURLResponse)?.statusCode ?? 0
    }

    @Test func batch_isStoredOnce_howeverOftenItComes() async throws {
        let receiver = try ReceiverProcess()
        let batch = Self.batch(["a", "b"])
        let first = try await post(receiver, batch)
        #expect(first.status == 200)
        #expect(first.reply["accepted"] as? Int == 2)
        #expect(first.reply["rejected"] as? Int == 0)
        let again = try await post(receiver, batch)
        #expect(again.status == 200)
        let overlapping = try await post(receiver, Self.batch(["b", "c"]))
        #expect(overlapping.reply["accepted"] as? Int == 1)
        #expect(overlapping.reply["duplicates"] as? Int == 1)
        #expect(
            try receiver.records("places").compactMap { $0["id"] as? String } == ["a", "b", "c"]
        )
        #expect(receiver.terminate() == 0)
    }

    @Test func files_useHiveLayout_withRecordsAsSent() async throws {
        let receiver = try ReceiverProcess()
        _ = try await post(receiver, Self.batch(["a"]))
        let path = receiver.folder + "/stream=places/date=2026-11-21/device=d1/records.ndjson"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text == #"{"id":"a","timestamp":"2026-11-21T04:30:07.123Z","value":1.50}"# + "\n")
    }

    /// A user's stream: any name, any members, stored as sent.
    @Test func streamNeverHeardOf_isKeptByteForByte() async throws {
        let receiver = try ReceiverProcess()
        let members = [
            #""temperature_c":21.50"#, #""n":-0.0,"big":123456789012345678901234567890"#,
            #""tiny":1e-400,"fine":0.1000000000000000055511151231257827,"e":1E+2"#,
            #""text":"é\u00e9\"\\\n€","deep":{"id":[{"timestamp":null}],"":true}"#,
        ]
        let records = members.enumerated().map { index, members in
            #"{"id":"w\#(index)","timestamp":"2026-11-21T04:30:07.123Z",\#(members),"#
                + #""clock":"synced"}"#
        }
        let body = """
            {"stream_name":"3d_printer-X","device_id":"d1","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":\(records.count)}}
            """
        let answer = try await post(receiver, ("k", Data(body.utf8)))
        #expect(answer.status == 200)
        let path = receiver.folder + "/stream=3d_printer-X/date=2026-11-21/device=d1/records.ndjson"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text == records.map { $0 + "\n" }.joined())
    }

    /// Audio is recognised by its format; a member with the same name alone is plain data.
    @Test(arguments: [
        #""audio_data":"none""#, #""audio_data":"T2dnUw==""#, #""audio_data":7,"audio_format":1"#,
        #""audio_data":{"a":1}"#, #""audio_format":"ogg""#,
        #""audio_data":"x","audio_format":"mp3""#,
    ])
    func memberOfAStreamOfTheUser_isNotSound(member: String) async throws {
        let receiver = try ReceiverProcess()
        let batch = Self.batch(["a"], stream: "weather", extra: "," + member)
        #expect(try await post(receiver, batch).status == 200)
        let path = receiver.folder + "/stream=weather/date=2026-11-21/device=d1/records.ndjson"
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains(member))
    }

    @Test func lostIndex_isAnErrorAndNoReasonToEmptyTheFiles() async throws {
        let receiver = try ReceiverProcess()
        _ = try await post(receiver, Self.batch(["a"]))
        #expect(receiver.terminate() == 0)
        for name in try FileManager.default.contentsOfDirectory(atPath: receiver.folder)
        where name.hasPrefix(".receiver.sqlite") {
            try FileManager.default.removeItem(atPath: receiver.folder + "/" + name)
        }
        #expect(throws: NeverHappened.self) { try receiver.start() }
        #expect(try receiver.records("places").count == 1)
    }

    /// A program that sends each batch with the same key.
    @Test func keyThatWasUsedForOtherRecords_losesNone() async throws {
        let receiver = try ReceiverProcess()
        let (first, second) = (Self.batch(["a", "b"]), Self.batch(["b", "c"]))
        _ = try await post(receiver, first)
        let answer = try await post(receiver, (first.key, second.body))
        #expect(answer.status == 200)
        #expect(answer.reply["accepted"] as? Int == 1)
        #expect(answer.reply["duplicates"] as? Int == 1)
        #expect(try receiver.ids("places") == ["a", "b", "c"])
        _ = try await post(receiver, (first.key, second.body))
        #expect(try receiver.ids("places") == ["a", "b", "c"])
    }

    /// Keys are kept for as long as a gateway may repeat a batch, ids for ever.
    @Test func repeatedBatch_isStoredOnce_howeverOldItsKeyIs() async throws {
        let receiver = try ReceiverProcess()
        let batches = (0..<10).map { Self.batch(["a\($0)"], key: "k\($0)") }
        for batch in batches { _ = try await post(receiver, batch) }
        for (place, new) in [(6, 1), (7, 1), (8, 1), (9, 1), (9, 1), (0, 0)] {
            let answer = try await post(receiver, batches[place])
            #expect(answer.status == 200)
            #expect(answer.reply["accepted"] as? Int == new, "\(place)")
            #expect(answer.reply["duplicates"] as? Int == 1 - new, "\(place)")
        }
        #expect(try receiver.ids("places") == (0..<10).map { "a\($0)" })
        #expect(try receiver.sql("SELECT max(length(recent)) < 60 FROM streams") == "[(1,)]\n")
    }

    @Test func keyOfAnotherDevice_isAnotherKey() async throws {
        let receiver = try ReceiverProcess()
        _ = try await post(receiver, Self.batch(["a"], device: "d1", key: "k"))
        let other = try await post(receiver, Self.batch(["b"], device: "d2", key: "k"))
        #expect(other.reply["accepted"] as? Int == 1)
        #expect(try receiver.records("places").count == 2)
    }

    @Test func sound_becomesAPlayableFileThatTheRecordNames() async throws {
        let receiver = try ReceiverProcess()
        let extra =
            #","audio_data":"T2dnUw==","audio_format":"ogg","duration":30.0,"device":"hw:1""#
        _ = try await post(receiver, Self.batch(["a"], stream: "sound", extra: extra))
        let record = try #require(try receiver.records("sound").first)
        #expect(record["audio_data"] == nil)
        // In a partition `device` is the gateway.
        #expect(record["device"] == nil)
        #expect(record["capture_device"] as? String == "hw:1")
        let name = try #require(record["audio_file"] as? String)
        let path = receiver.folder + "/audio/sound/2026-11-21/d1/" + name
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("OggS".utf8))
        let partition = receiver.folder + "/stream=sound/date=2026-11-21/device=d1"
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: partition) == ["records.ndjson"]
        )
    }

    @Test func gzipAndZstd_areUndone_andBrokenOnesRefused() async throws {
        let receiver = try ReceiverProcess()
        let plain = Self.batch(["a"])
        let zipped = try await post(receiver, (plain.key, gzip(plain.body)), encoding: "gzip")
        #expect(zipped.status == 200)
        let second = Self.batch(["b"])
        let zstd = try await post(receiver, (second.key, zstandard(second.body)), encoding: "zstd")
        #expect(zstd.status == 200)
        let third = Self.batch(["c"])
        let cut = try await post(
            receiver,
            (third.key, gzip(third.body).dropLast(9)),
            encoding: "gzip"
        )
        #expect(cut.status == 400)
        let noise = try await post(receiver, (third.key, Data([1, 2, 3])), encoding: "zstd")
        #expect(noise.status == 400)
        let unknown = try await post(receiver, third, encoding: "br")
        #expect(unknown.status == 415)
        #expect(try receiver.records("places").count == 2)
    }

    @Test func bomb_isRefusedBeforeItFillsTheMemory() async throws {
        let receiver = try ReceiverProcess()
        let bomb = gzip(Data(count: 80 << 20))
        #expect(bomb.count < 1 << 20)
        #expect(try await post(receiver, (UUID().uuidString, bomb), encoding: "gzip").status == 413)
    }

    @Test(arguments: [
        ("{}", "stream_name"), ("[]", "JSON object"), ("{", "JSON object"),
        (#"{"stream_name":"../x","device_id":"d","data":[]}"#, "stream_name"),
        (#"{"stream_name":"s","device_id":"a/b","data":[]}"#, "device_id"),
        (#"{"stream_name":"s","device_id":".","data":[]}"#, "device_id"),
        (#"{"stream_name":"s","device_id":"d","data":{}}"#, "data"),
        (
            #"{"stream_name":"s","device_id":"d","data":[{}],"batch_metadata":{"total_records":2}}"#,
            "total_records"
        ),
        (
            #"{"stream_name":"s","device_id":"d","data":[{"id":"../../x","timestamp":"2026-11-21T04:30:07Z"}],"batch_metadata":{"total_records":1}}"#,
            "record 0: id"
        ),
        (
            #"{"stream_name":"s","device_id":"d","data":[{"id":"x","timestamp":"../../../../../etc/x"}],"batch_metadata":{"total_records":1}}"#,
            "record 0: timestamp"
        ),
        (
            #"{"stream_name":"s","device_id":"d","data":[1],"batch_metadata":{"total_records":1}}"#,
            "record 0: not an object"
        ),
    ])
    func malformedBody_isRefusedWithTheReason_andNothingIsStored(body: String, reason: String)
        async throws
    {
        let receiver = try ReceiverProcess()
        let answer = try await post(receiver, ("k", Data(body.utf8)))
        #expect(answer.status == 422)
        #expect((answer.reply["error"] as? String)?.contains(reason) == true)
        let left = try FileManager.default.contentsOfDirectory(atPath: receiver.folder)
        #expect(left.allSatisfy { $0.hasPrefix(".receiver") })
    }

    @Test func invalidRequests_getDistinctStatusCodes() async throws {
        let receiver = try ReceiverProcess(["--max-body", "2000"])
        let batch = Self.batch(["a"])
        #expect(try await post(receiver, batch, token: nil).status == 401)
        #expect(try await post(receiver, ("", batch.body)).status == 400)
        #expect(try await post(receiver, ("../x", batch.body)).status == 400)
        #expect(try await post(receiver, ("k", Data(count: 3000))).status == 413)
        #expect(try await post(receiver, batch, path: "nowhere").status == 404)
        #expect(try await post(receiver, batch, method: "GET").status == 405)
        let known = try await post(receiver, batch, path: "api/device/verify")
        #expect(known.status == 200 && known.reply["max_body"] as? Int == 2000)
        #expect(
            try await post(receiver, batch, token: nil, path: "api/device/verify").status == 401
        )
        #expect(try await post(receiver, batch, path: "healthz", method: "GET").status == 200)
    }

    @Test func killDuringBatches_losesAndDuplicatesNothing() async throws {
        let receiver = try ReceiverProcess()
        var answered: Set<String> = []
        for round in 0..<5 {
            let batches = (0..<12).map { Self.batch(["r\(round)-\($0)-a", "r\(round)-\($0)-b"]) }
            for (index, batch) in batches.enumerated() {
                if index == 6 {
                    // A request in progress when the receiver dies.
                    let racing = Task { [base = receiver.base] in
                        try await Self.status(base, batch)
                    }
                    receiver.kill()
                    _ = try? await racing.value
                    try receiver.start()
                }
                #expect(try await post(receiver, batch).status == 200)
            }
            answered.formUnion((0..<12).flatMap { ["r\(round)-\($0)-a", "r\(round)-\($0)-b"] })
        }
        let stored = try receiver.records("places").compactMap { $0["id"] as? String }
        #expect(stored.count == 120)
        #expect(Set(stored) == answered)
    }
}
