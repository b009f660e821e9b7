// Receivers without local state, with a store that checks signatures.
import Foundation
import ReceiverSupport
import Support
import Testing

// One store at a time: each is a Python process of some 100 MB.
@Suite(.serialized) struct BucketReceiverTests {
    // MARK: Days

    /// Records of two days in turns, fewer of the second.
    private let twoDays: [UInt8] = {
        let records = (0..<6).map {
            #"{"id":"r\#($0)","timestamp":"2026-11-2\#($0 % 3 == 2 ? 2 : 1)T23:59:59.000Z","n":\#($0)}"#
        }
        return Array(
            """
            {"stream_name":"places","device_id":"d1","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":6}}
            """.utf8
        )
    }()
    private let firstDay = "via/stream=places/date=2026-11-21/device=d1/k.ndjson.gz"
    private let secondDay = "via/stream=places/date=2026-11-22/device=d1/k.ndjson.gz"

    @Test func batchOfTwoDays_isTwoObjects_atAnotherServerToo() throws {
        let site = try BucketSite()
        let (first, second) = (try site.receiver(), try site.receiver())
        let answer = try first.post("k", twoDays)
        #expect(answer.status == 200)
        #expect(answer.body.contains(#""accepted":6"#))
        let before = try site.store.contents()
        #expect(Set(before.objects.keys) == [firstDay, secondDay])
        #expect(Set(before.objects.values) == ["application/gzip"])
        #expect(before.rows.map(\.records) == [4, 2])
        #expect(try second.post("k", twoDays).body == answer.body)
        #expect(try site.store.contents().digests == before.digests)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: site.folder.path + "/bodies") == []
        )
    }

    @Test func tooManyDays_areRejected_soTheGatewayHalvesThem() throws {
        let site = try BucketSite()
        let receiver = try site.receiver()
        func batch(_ days: Int) -> [UInt8] {
            let records = (0..<days).map {
                #"{"id":"r\#($0)","timestamp":"\#(2000 + $0)-01-01T00:00:00Z"}"#
            }
            return Array(
                """
                {"stream_name":"places","device_id":"d1","data":[\(records.joined(separator: ","))],
                "batch_metadata":{"total_records":\(days)}}
                """.utf8
            )
        }
        #expect(try receiver.post("k", batch(33)).status == 413)
        #expect(try receiver.post("l", batch(32)).status == 200)
        #expect(try site.counts() == .once(32))
    }

    // MARK: A bucket that refuses

    @Test(arguments: ["503", "500", "403", "301", "portal", "cut", "stored", "hang"])
    func whatTheBucketDidNotConfirm_isNeverAnsweredWith200(fault: String) throws {
        let site = try BucketSite(faults: ["ok", fault])
        let receiver = try site.receiver()
        let refused = try receiver.post("k", twoDays)
        #expect(refused.status == 503)
        #expect(refused.header.contains("Retry-After: 30"))
        #expect(refused.body.contains("the bucket"))
        let isThere = ["stored", "hang"].contains(fault)
        let objects = try site.store.contents().objects
        #expect(objects.keys.contains(secondDay) == isThere)
        // The error must not show the receiver's keys to a device.
        #expect(!refused.body.contains(site.store.access.secret))
        #expect(try receiver.post("k", twoDays).status == 200)
        #expect(try site.counts() == .once(6))
    }

    /// The larger object is sent first, so nothing is stored twice under the ids of the halves.
    @Test func whatIsTooLargeForTheStore_isHalvedByTheGateway() throws {
        let site = try BucketSite(faults: ["413"])
        let receiver = try site.receiver()
        #expect(try receiver.post("k", twoDays).status == 413)
        #expect(site.store.nextPut() == "413 \(firstDay)")
        #expect(try site.store.contents().objects.isEmpty)
    }

    @Test func stopWhileTheStoreIsSilent_comesInTime_andIsNoYes() throws {
        let site = try BucketSite(faults: ["hang"])
        let receiver = try site.receiver()
        let client = try RawClient(receiver)
        client.send(RawRequest.head("k", length: twoDays.count))
        client.send(twoDays)
        _ = site.store.nextPut()
        #expect(receiver.terminate() == 0)
        // A busy machine may close the connection instead.
        #expect([503, nil].contains(client.answer()?.status))
    }

    @Test func unusableBucket_keepsRecordsAtTheGateway() throws {
        let site = try BucketSite()
        let away = try site.receiver(url: "http://127.0.0.1:\(freePort())/field-data")
        let answer = try away.post("k", twoDays)
        #expect(answer.status == 503)
        #expect(answer.header.contains("Retry-After: 30"))
        #expect(try away.request(RawRequest.health).status == 200)
        let wrong = try site.folder.write("AKIA0000000000000000:x", to: "wrong")
        let stranger = try site.receiver(["--credentials-file", wrong])
        let refused = try stranger.post("k", twoDays)
        #expect(refused.status == 503)
        #expect(refused.body.contains("refused the keys"))
        #expect(refused.body.contains("--credentials-file"))
        // New keys need no restart.
        try site.folder.write(site.store.access.keys, to: "wrong")
        #expect(try stranger.post("k", twoDays).status == 200)
    }

    @Test func storedAudio_isNotResent_soASlowStoreGetsItOnce() throws {
        let site = try BucketSite(faults: ["ok", "ok", "503"])
        let receiver = try site.receiver()
        let records = (0..<3).map {
            """
            {"id":"s\($0)","timestamp_start":"2026-11-21T04:30:0\($0).000Z",\
            "audio_data":"T2dnUw==","audio_format":"ogg"}
            """
        }
        let body = Array(
            """
            {"stream_name":"audio","device_id":"d1","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":3}}
            """.utf8
        )
        #expect(try receiver.post("k", body).status == 503)
        #expect(try receiver.post("k", body).status == 200)
        let puts = (0..<5).map { _ in site.store.nextPut().split(separator: "_").last ?? "" }
        #expect(puts.prefix(4) == ["s0.ogg", "s1.ogg", "s2.ogg", "s2.ogg"])
        let contents = try site.store.contents()
        #expect(contents.sound.values.sorted() == ["OggS", "OggS", "OggS"])
        #expect(contents.rows.map(\.records) == [3])
    }

    @Test func bucketThatHangs_costsMemoryWithinTheBounds() throws {
        let site = try BucketSite()
        let silent = listening(backlog: 64)
        defer { close(silent.socket) }
        let receiver = try site.receiver(url: "http://127.0.0.1:\(silent.port)/field-data")
        let noise = String(
            decoding: (0..<8_000_000).map { _ in UInt8.random(in: 65...90) },
            as: UTF8.self
        )
        let statuses = Locked<[Int]>([])
        let port = receiver.port
        try withThreads(32) { number in
            let client = try? RawClient(port: port, from: "127.0.1.\(1 + number / 8)")
            let body = RawRequest.batch(["r\(number)"], padding: #","noise":"\#(noise)""#)
            client?.send(RawRequest.head("\(number)", length: body.count))
            client?.send(body)
            let status = client?.answer(within: 5)?.status ?? 0
            statuses.update { $0.append(status) }
        }
        #expect(statuses.value == Array(repeating: 503, count: 32))
        let peak = try receiver.residentPeak()
        #expect(peak < ReceiverProcess.residentLimit, "resident: \(peak)")
    }

    // MARK: Behind a load balancer

    @Test func receiversKilledUnderLoad_leaveEachRecordOnce() throws {
        let site = try BucketSite()
        let receivers = try (0..<2).map { _ in
            try site.receiver(["--behind-proxy", "--listen", "127.0.0.1:\(freePort())"])
        }
        let balancer = try Balancer(receivers)
        let clients = ManyClients(8, at: balancer.port)
        for round in 0..<6 {
            let before = clients.answered.value.count
            let isAnswered = eventually { clients.answered.value.count > before + 40 }
            try #require(isAnswered, "answers by status: \(clients.statuses.value)")
            receivers[round % 2].kill()
            try receivers[round % 2].start()
        }
        try clients.finish()
        let counts = try site.counts()
        #expect(counts == .once(clients.answered.value.count))
        // Some were cut off, or this test would prove nothing.
        #expect(clients.statuses.value[0, default: 0] > 0)
    }

    // MARK: Refused settings

    @Test func tokensOfAFile_areTheOnlyOnes() throws {
        let site = try BucketSite()
        let tokens = try site.folder.write("one d1\nany\n", to: "tokens")
        let receiver = try site.receiver(["--tokens", tokens])
        #expect(try receiver.post("k", twoDays, token: "wrong").status == 401)
        #expect(try receiver.post("k", twoDays, token: "one").status == 200)
        let other = RawRequest.batch(["x"], device: "d2")
        #expect(try receiver.post("k", other, token: "one").status == 403)
        #expect(try receiver.post("k", other, token: "any").status == 200)
        #expect(try site.counts() == .once(7))
        let enrolment = "POST /api/device/enroll HTTP/1.1\r\nHost: r\r\nContent-Length: 0\r\n\r\n"
        let answer = try receiver.request(enrolment)
        #expect(answer.status == 404)
        #expect(answer.body.contains("no codes"))
    }

    @Test(arguments: [
        (["--alert-command", "/bin/true"], 64, "need a folder"),
        (["--influx", "http://h:1/write?db=d"], 64, "need a folder"),
        (["--bucket-url", "http://example.org/b"], 64, "--allow-plaintext"),
        (["--bucket-url", "https://example.org/other"], 64, "names another bucket"),
        (["--credentials-file", "/nonexistent"], 78, "put ID:SECRET there"),
        ([], 78, "--credentials-file"),
    ])
    func unsupportedOption_isReportedAtStart(arguments: [String], status: Int32, words: String)
        throws
    {
        let outcome = try Process.run(
            Tree.program("waypost-receiver"),
            ["--data", "s3://b/x", "--listen", "127.0.0.1:0"] + arguments
        )
        #expect(outcome.status == status)
        #expect(outcome.error.contains(words), "\(outcome.error)")
    }

    @Test(arguments: [["codes", "list"], ["devices"], ["viewers", "list"], ["index", "check"]])
    func commandsAboutWhatItDoesNotKeep_saySo(command: [String]) throws {
        let outcome = try Process.run(
            Tree.program("waypost-receiver"),
            command + ["--data", "s3://b/x"]
        )
        #expect(outcome.status == 64)
        #expect(outcome.error.contains("set --data to a folder"), "\(outcome.error)")
    }
}
