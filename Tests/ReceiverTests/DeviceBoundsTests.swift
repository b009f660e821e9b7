// A device with hostile data must not break the pages of others.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct DeviceBoundsTests {
    private static let index = ".receiver-index.sqlite"

    private func event(_ kind: String, _ source: String, _ detail: String = "") -> String {
        #","kind":"\#(kind)","source":"\#(source)","detail":{\#(detail)}"#
    }

    /// Sends a batch of a stream of `d1`, with the given members for each record.
    private func send(
        _ receiver: ReceiverProcess,
        _ members: [String],
        stream: String = "places",
        device: String = "d1",
        time: String = RawRequest.time()
    ) throws -> RawClient.Answer {
        let records = members.map {
            #"{"id":"\#(UUID().uuidString)","timestamp":"\#(time)"\#($0)}"#
        }
        let body = Array(
            """
            {"stream_name":"\(stream)","device_id":"\(device)","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":\(records.count)}}
            """.utf8
        )
        return try receiver.request(RawRequest.head(length: body.count), body)
    }

    /// Waits until everything sent is indexed.
    private func waitForIndex(_ receiver: ReceiverProcess, records: Int) throws {
        let sum = "SELECT sum(records + broken) FROM files"
        try receiver.waitUntil(sum, gives: "[(\(records),)]\n", in: Self.index)
    }

    // MARK: Failures stay with one device

    /// Ten million losses of 10¹² records exceed 64 bits.
    @Test func lossesThatAddUpToTooMuch_breakNoPage() throws {
        let receiver = try ReceiverProcess()
        let loss = event("gap", "storage", #""records":1000000000000"#)
        #expect(try send(receiver, [loss]).status == 200)
        #expect(try send(receiver, [""], device: "d2").status == 200)
        try waitForIndex(receiver, records: 2)
        // As many events without sending them: the same row repeated.
        try receiver.sql("ALTER TABLE events RENAME TO one_event", in: Self.index)
        try receiver.sql(
            """
            CREATE VIEW events AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 10000000)
            SELECT one_event.* FROM one_event, n
            """,
            in: Self.index
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let answer = try browser.get("/")
        #expect(answer.status == 200)
        #expect(answer.body.contains("lost in the last day"))
        #expect(answer.body.contains(#"href="/device/d2""#))
    }

    @Test func indexThatCannotBeReadForOneDevice_showsTheOthers() throws {
        let receiver = try ReceiverProcess()
        let lost = event("source_lost", "audio")
        #expect(try send(receiver, [event("gap", "storage", #""records":1"#)]).status == 200)
        #expect(try send(receiver, [lost], device: "d2").status == 200)
        try waitForIndex(receiver, records: 2)
        // abs() of the smallest integer fails the whole query.
        try receiver.sql("ALTER TABLE events RENAME TO all_events", in: Self.index)
        try receiver.sql(
            """
            CREATE VIEW events AS SELECT device, time, id, file, kind, source,
            iif(device='d1', abs(-9223372036854775807 - 1), records) AS records, detail FROM all_events
            """,
            in: Self.index
        )
        let html = try PageClient(receiver, viewer: "anna").page(with: "audio has been lost since")
        #expect(html.contains("the index of this device is unreadable"))
    }

    /// Numbers, texts and dates at their limits; the other device is still shown.
    @Test func extremeValues_breakNoPage() throws {
        let receiver = try ReceiverProcess()
        let numbers = [
            "9223372036854775807", "-9223372036854775808", "1e308", "-1e308", "1e999", "-0",
        ]
        let names = [
            "latitude", "longitude", "altitude", "battery_percent", "battery_mv", "free_bytes",
            "pending",
            "rssi", "duration", "average_db_level", "records",
        ]
        var members: [String] = []
        for number in numbers {
            let all = names.map { #""\#($0)":\#(number)"# }.joined(separator: ",")
            members.append("," + all)
            members.append(#","beacon_id":"b","telemetry":{\#(all)},"# + all)
            for kind in ["gap", "storage_low", "source_lost", "source_recovered"] {
                let span =
                    #","since":"0000-01-01T00:00:00Z","from":"0000-01-01T00:00:00Z","to":"9999-12-31T23:59:59Z""#
                members.append(event(kind, "s\(number)", all + span))
            }
        }
        let times = [
            RawRequest.time(), "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
            "1969-12-31T23:59:59Z",
        ]
        for time in times { #expect(try send(receiver, members, time: time).status == 200) }
        #expect(try send(receiver, [""], device: "d2").status == 200)
        try waitForIndex(receiver, records: members.count * times.count + 1)
        let browser = try PageClient(receiver, viewer: "anna")
        var paths = ["/", "/device/d1", "/device/d2"]
        for time in times { paths.append("/device/d1/\(time.prefix(10))") }
        for path in paths { #expect(try browser.get(path).status == 200, "\(path)") }
        #expect(try receiver.command("index", "check").status == 0)
    }

    /// Chunks of ten thousand years, whose summed lengths exceed 64 bits.
    @Test func chunksOfCenturies_breakNoPage() throws {
        let receiver = try ReceiverProcess()
        let chunk =
            #","timestamp_start":"0001-01-01T00:00:00Z","timestamp_end":"9999-12-31T23:59:59Z","audio_file":"a.wav""#
        let chunks = Array(repeating: chunk, count: 40_000)
        let time = "0001-01-01T00:00:00Z"
        #expect(try send(receiver, chunks, time: time).status == 200)
        try waitForIndex(receiver, records: chunks.count)
        let browser = try PageClient(receiver, viewer: "anna")
        let day = try browser.get("/device/d1/0001-01-01")
        #expect(day.status == 200)
        #expect(try browser.get("/device/d1/0001-01-01/places/00").body.utf8.count < 5_000_000)
    }

    // MARK: Bounds

    @Test func names_areBounded_andWhatIsKnownGoesOn() throws {
        let receiver = try ReceiverProcess()
        for number in 0..<100 {
            #expect(try send(receiver, [""], stream: "s\(number)").status == 200)
        }
        let refused = try send(receiver, [""], stream: "one-more")
        #expect(refused.status == 422)
        #expect(refused.body.contains("d1 has 100 streams already"))
        #expect(try send(receiver, [""], stream: "s7").status == 200)
        #expect(try send(receiver, [""], stream: "one-more", device: "d2").status == 200)
        #expect(try receiver.records("one-more").count == 1)
    }

    @Test func sourcesOfEvents_areBounded_andNameFewOnThePage() throws {
        let receiver = try ReceiverProcess()
        let sources = (0..<200).map { event("source_lost", "source-\($0)") }
        #expect(try send(receiver, sources).status == 200)
        let refused = try send(receiver, [event("source_lost", "one-more")])
        #expect(refused.status == 422)
        #expect(refused.body.contains("d1 has events of more than 200 sources"))
        #expect(try send(receiver, [event("source_lost", "source-3")]).status == 200)
        // A stream with too many does not stop the gateway's own events.
        let own = event("source_lost", "audio")
        #expect(try send(receiver, [own], stream: "waypost_events").status == 200)
        // A user's stream may have any number of events of other kinds.
        let others = (0..<300).map { event("door", "door-\($0)") }
        #expect(try send(receiver, others).status == 200)
        // And of these kinds too, if `detail` is not an object, because then it is not an event.
        let jobs = (0..<300).map { #","kind":"started","source":"job-\#($0)","detail":"x""# }
        #expect(try send(receiver, jobs).status == 200)
        #expect(try send(receiver, sources, device: "d2").status == 200)
        try waitForIndex(receiver, records: 1002)
        let html = try PageClient(receiver, viewer: "anna").get("/").body
        #expect(html.contains("191 more sources are lost"))
        #expect(html.components(separatedBy: " has been lost since").count == 21)
    }

    @Test func dailyBytesAndFiles_areLimitedPerDevice() throws {
        let receiver = try ReceiverProcess(["--max-per-day", "200kB"])
        let large = #","text":"\#(String(repeating: "x", count: 200_000))""#
        let body = RawRequest.batch(["a"], padding: large)
        #expect(try receiver.request(RawRequest.head("k", length: body.count), body).status == 200)
        let refused = try receiver.request(RawRequest.head("l", length: body.count), body)
        #expect(refused.status == 429)
        #expect(refused.header.contains("Retry-After: 3600"))
        #expect(refused.body.contains("d1 has stored"))
        // The answer was lost, but the batch is already stored.
        #expect(try receiver.request(RawRequest.head("k", length: body.count), body).status == 200)
        #expect(try send(receiver, [""], device: "d2").status == 200)
        // The next day.
        try receiver.sql("UPDATE stream_days SET day=day-1")
        #expect(try send(receiver, [""]).status == 200)
        try receiver.sql("UPDATE stream_days SET bytes=0, files=20000")
        let new = try send(receiver, [""], stream: "other")
        #expect(new.status == 429 && !new.body.contains("stream\":"), "\(new.body)")
        #expect(try send(receiver, [""]).status == 200)
    }

    /// Dates from 1970 on, or too much data, in one stream: the others go on.
    @Test func limitsThatOneStreamUsesUp_holdThatStreamOnly() throws {
        let receiver = try ReceiverProcess(["--max-per-day", "8MB"])
        var day = 0
        func old(_ stream: String, days: Int) throws -> RawClient.Answer {
            let body = (0..<days).map { number in
                let date = Date(timeIntervalSince1970: 86_400 * TimeInterval(day + number))
                return #"{"id":"\#(UUID().uuidString)","timestamp":"\#(date.formatted(.iso8601))"}"#
            }
            day += days
            let text =
                #"{"stream_name":"\#(stream)","device_id":"d1","data":[\#(body.joined(separator: ","))],"#
                + #""batch_metadata":{"total_records":\#(days)}}"#
            return try receiver.request(RawRequest.head(length: text.utf8.count), Array(text.utf8))
        }
        for _ in 0..<4 { #expect(try old("wild", days: 100).status == 200) }
        // Each file counts 16 KiB, so that 440 are more than seven eighths.
        #expect(try old("wild", days: 40).status == 200)
        let full = try old("wild", days: 1)
        #expect(full.status == 429 && full.body.contains(#""stream":"wild""#), "\(full.body)")
        #expect(full.body.contains("7/8 of --max-per-day"))
        try receiver.sql("UPDATE stream_days SET bytes=0, files=999")
        #expect(try old("wild", days: 1).status == 200)
        let last = try old("wild", days: 1)
        #expect(last.status == 429 && last.body.contains("1000 are the limit"), "\(last.body)")
        #expect(
            last.body.contains(#""stream":"wild""#) && last.header.contains("Retry-After: 3600")
        )
        // Days that have a file, and all other streams.
        #expect(
            try send(receiver, [""], stream: "wild", time: "1970-01-01T05:00:00Z").status == 200
        )
        for stream in ["places", "waypost_events"] {
            #expect(try old(stream, days: 30).status == 200)
        }
        try receiver.sql("UPDATE stream_days SET day=day-1")
        #expect(try old("wild", days: 1).status == 200)
    }

    /// As an archive of an earlier version may hold it.
    @Test func pages_staySmall_whateverIsStored() throws {
        let receiver = try ReceiverProcess()
        let day = String(RawRequest.time().prefix(10))
        #expect(try send(receiver, [event("source_lost", "audio")]).status == 200)
        try waitForIndex(receiver, records: 1)
        #expect(receiver.terminate() == 0)
        let numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 20000)"
        let streams = "INSERT INTO streams(device, stream, records, batches, last_seen)"
        try receiver.sql("\(numbers) \(streams) SELECT 'd1', 'stream-'||x, 1, 1, 1 FROM n")
        for statement in [
            "INSERT INTO latest SELECT device, 'stream-'||x, time, id, file, line FROM latest, n",
            "INSERT INTO states SELECT device, kind, 'source-'||x, time, id, file, detail FROM states, n",
            "INSERT INTO files SELECT x+9, device, 'stream-'||x, date, 0, tail, 1, 0, first, last, 0 FROM files, n",
            "INSERT INTO slots SELECT x+9, slot, 1, 0, 1 FROM slots, n",
        ] { try receiver.sql("\(numbers) \(statement)", in: Self.index) }
        try receiver.start()
        let browser = try PageClient(receiver, viewer: "anna")
        for path in ["/", "/device/d1", "/device/d1/\(day)"] {
            let answer = try browser.get(path)
            #expect(answer.status == 200)
            #expect(answer.body.utf8.count < 300_000, "\(path): \(answer.body.utf8.count)")
        }
        #expect(try browser.get("/device/d1").body.contains("more streams are not shown"))
    }

    /// Only the beginning of an overlong name is shown.
    @Test func longNames_makeNoLongPage() throws {
        let receiver = try ReceiverProcess()
        let long = String(repeating: "x", count: 900)
        let members = (0..<99).map { event("source_lost", "\($0)\(long)") }
        #expect(try send(receiver, members).status == 200)
        try waitForIndex(receiver, records: 99)
        let browser = try PageClient(receiver, viewer: "anna")
        for path in ["/", "/device/d1"] {
            #expect(try browser.get(path).body.utf8.count < 80_000, "\(path)")
        }
    }
}
