// The read API: what it answers, and to whom.
import Foundation
import ReceiverSupport
import Support
import Testing

/// A program with a viewer's token.
struct APIClient {
    typealias Table = [[String: Any]]

    let receiver: ReceiverProcess
    let client: PageClient

    /// `viewer`: nil for a client without a token.
    init(_ receiver: ReceiverProcess, viewer: String? = "program") throws {
        self.receiver = receiver
        client = PageClient(receiver)
        guard let viewer else { return }
        use(try receiver.command("viewers", "add", viewer).output.trimmingCharacters(in: .newlines))
    }

    func use(_ token: String, _ more: String = "") {
        client.extra = "Authorization: Bearer \(token)\r\n\(more)"
    }

    func get(_ path: String, _ method: String = "GET") throws -> RawClient.Answer {
        try client.request(method, "/api/v1/\(path)")
    }

    func object(_ path: String) throws -> [String: Any] {
        let answer = try get(path)
        #expect(answer.status == 200, "\(path): \(answer.body)")
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return try #require(object as? [String: Any])
    }

    func rows(_ path: String) throws -> Table {
        try #require(try object(path)["data"] as? Table)
    }

    func columns(_ path: String) throws -> [String: [Any]] {
        try #require(try object(path)["data"] as? [String: [Any]])
    }

    /// Follows the pages of a CSV; returns its lines without the heading, and the number of pages.
    func lines(_ path: String) throws -> (lines: [String], pages: Int) {
        var (address, lines, pages) = ("/api/v1/\(path)", [String](), 0)
        while true {
            let answer = try client.get(address)
            #expect(answer.status == 200, "\(address): \(answer.body)")
            lines += answer.body.components(separatedBy: "\r\n").dropFirst().dropLast()
            pages += 1
            guard let next = answer.header.firstMatch(of: /Link: <([^>]+)>; rel="next"/) else {
                return (lines, pages)
            }
            address = String(next.1)
        }
    }

    /// Waits until so many records of d1 are in the index.
    func expectIndexed(_ count: Int) throws {
        let records = "SELECT sum(records) FROM files WHERE device='d1'"
        try receiver.waitUntil(records, gives: "[(\(count),)]\n", in: ".receiver-index.sqlite")
    }
}

@Suite struct ReadAPITests {
    private static let day = "2026-11-21"
    private static let (first, second) = ("2026-11-21", "2026-11-22")

    @Test func onlyAViewer_getsData() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let stranger = try APIClient(receiver, viewer: nil)
        // There is no viewer yet.
        #expect(try stranger.get("devices").status == 404)
        let program = try APIClient(receiver)
        #expect(try program.get("devices").status == 200)
        let refused = try stranger.get("devices")
        #expect(refused.status == 401)
        #expect(refused.header.contains("WWW-Authenticate: Bearer"))
        #expect(refused.body.contains("Authorization: Bearer TOKEN"))
        let browser = try PageClient(receiver, viewer: "anna")
        #expect(try browser.get("/api/v1/devices").status == 200)
        let writing = try program.get("devices", "POST")
        #expect(writing.status == 405)
        #expect(writing.header.contains("Allow: GET"))
        #expect(try receiver.command("viewers", "drop", "program").status == 0)
        #expect(try program.get("devices").status == 401)
        // The description has no data.
        #expect(try stranger.get("openapi.json").status == 200)
    }

    @Test func description_hasTheJobsOfDevices() throws {
        let receiver = try ReceiverProcess()
        let body = try APIClient(receiver).get("openapi.json").body
        let object = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
        let jobs = (object?["paths"] as? [String: Any])?["/api/device/jobs"] as? [String: Any]
        let get = try #require(jobs?["get"] as? [String: Any])
        #expect(get["security"] as? [[String: [String]]] == [["device": []]])
        let components = object?["components"] as? [String: [String: Any]]
        #expect(components?["securitySchemes"]?["device"] != nil)
        let reply = components?["schemas"]?["reply"] as? [String: Any]
        #expect(reply?["required"] as? [String] == ["id", "timestamp", "job", "kind", "state"])
    }

    @Test func wrongTokens_lockTheLoginOut_andNoGoodToken() throws {
        let receiver = try ReceiverProcess()
        let (good, guess) = (try APIClient(receiver), try APIClient(receiver, viewer: nil))
        for index in 0..<10 {
            guess.use("guess-\(index)")
            #expect(try guess.get("devices").status == 401)
        }
        let locked = try guess.get("devices")
        #expect(locked.status == 429)
        #expect(locked.header.contains("Retry-After: "))
        #expect(try PageClient(receiver).logIn("guess") == 429)
        #expect(try good.get("devices").status == 200)
    }

    @Test func devices_areListed_withTheirState() throws {
        let receiver = try ReceiverProcess()
        let ids = (0..<7).map { "d\($0)" }
        for id in ids { #expect(try receiver.send(device: id, ids: [id]) == 200) }
        let place = #""latitude":46.5,"longitude":-6.25"#
        try receiver.send("walks", on: Self.day, [("10:00:00", place)])
        let program = try APIClient(receiver)
        try program.expectIndexed(2)
        let one = try program.object("devices/d1")
        #expect(one["device"] as? String == "d1")
        #expect(one["latitude"] as? Double == 46.5)
        #expect(one["position_at"] as? String == "2026-11-21T10:00:00.000Z")
        let streams = try #require(one["streams"] as? APIClient.Table)
        #expect(streams.map { $0["stream"] as? String } == ["places", "walks"])
        #expect(streams.map { $0["content"] as? String } == ["readings", "positions"])
        let all = try program.lines("devices?limit=3&format=csv")
        #expect(all.pages == 3)
        #expect(all.lines.map { $0.split(separator: ",").first.map(String.init) } == ids)
        #expect(try program.rows("devices?state=healthy").count == 7)
        #expect(try program.rows("devices?state=late").isEmpty)
    }

    /// Two days and two streams, in pages of every size.
    @Test func readings_comeInPages_eachOnce() throws {
        let receiver = try ReceiverProcess()
        for day in [Self.first, Self.second] {
            let weather = (0..<30).map {
                ($0 * 60, #""temperature_c":\#($0).5,"odd,\"name":\#($0)"#)
            }
            try receiver.send("weather", on: day, weather)
            let heard = (0..<20).map { second in
                (
                    second * 60,
                    #""kind":"ruuvi","beacon_id":"b\#(second % 2)","rssi":-\#(second + 40),"telemetry":{"temperature_c":\#(second)}"#
                )
            }
            try receiver.send("linux_bluez_beacons", on: day, heard)
        }
        let program = try APIClient(receiver)
        try program.expectIndexed(100)
        let whole = try program.lines("devices/d1/readings?format=csv")
        #expect(whole.pages == 1)
        #expect(whole.lines.count == 200)
        #expect(whole.lines[0] == "2026-11-21T00:00:00.000Z,linux_bluez_beacons,b0,rssi,-40")
        #expect(whole.lines[41] == #"2026-11-21T00:00:00.000Z,weather,,"odd,""name",0"#)
        for limit in [1, 7, 199, 200] {
            let paged = try program.lines("devices/d1/readings?format=csv&limit=\(limit)")
            #expect(paged.lines == whole.lines, "\(limit)")
        }
        let some = try program.columns(
            "devices/d1/readings?beacon=b1&key=temperature_c&from=2026-11-22T00:03:00Z&to=2026-11-22T01:10:00%2B01:00"
        )
        #expect(some["value"] as? [Double] == [3, 5, 7, 9])
        #expect(some["beacon"] as? [String] == ["b1", "b1", "b1", "b1"])
        let own = try program.columns(
            "devices/d1/readings?stream=weather&limit=1&key=temperature_c"
        )
        #expect(own["value"] as? [Double] == [0.5])
        #expect(own["beacon"]?.first is NSNull)
    }

    /// A page reads 16 MB at most, even if it finds nothing.
    @Test func largeFile_isReadInSteps() throws {
        let receiver = try ReceiverProcess()
        let text = String(repeating: "x", count: 100_000)
        for batch in 0..<4 {
            let records = (0..<100).map {
                (batch * 14_400 + $0 * 144, #""n":\#($0),"text":"\#(text)""#)
            }
            try receiver.send("notes", on: Self.day, records)
        }
        let program = try APIClient(receiver)
        try program.expectIndexed(400)
        let none = try program.lines("devices/d1/readings?format=csv&key=none")
        #expect(none.lines.isEmpty)
        #expect(none.pages == 3)
        #expect(try program.lines("devices/d1/readings?format=csv").lines.count == 400)
        // A part of the day is found by the index.
        let hour = "from=2026-11-21T12:00:00Z&to=2026-11-21T13:00:00Z"
        let part = try program.lines("devices/d1/readings?format=csv&\(hour)")
        #expect(part.pages == 1)
        #expect(part.lines.count == 25)
    }

    @Test func positionsAudioAndEvents_areAnswered() throws {
        let receiver = try ReceiverProcess()
        let fix = #""latitude":46.1234567,"longitude":6.5,"speed":1.25,"fix":"3d""#
        try receiver.send("walks", on: Self.day, [("10:00:00", fix), ("10:00:10", fix)])
        try SentAudio.send(receiver, [("d1", 3600, 1.0)], on: Self.day)
        let detail = #""detail":{"records":5,"kind":"overrun"}"#
        try receiver.send(
            "waypost_events",
            on: Self.day,
            (0..<5).map { ($0, #""kind":"gap","source":"s\#($0 % 2)",\#(detail)"#) }
        )
        let program = try APIClient(receiver)
        try program.expectIndexed(8)
        let positions = try program.columns("devices/d1/positions")
        #expect(positions["latitude"] as? [Double] == [46.1234567, 46.1234567])
        #expect(positions["fix"] as? [String] == ["3d", "3d"])
        #expect(positions["altitude"]?.allSatisfy { $0 is NSNull } == true)
        let chunk = try #require(try program.rows("devices/d1/audio").first)
        #expect(chunk["level_db"] as? Double == -42.5)
        let path = try #require(chunk["path"] as? String)
        let file = try Process.run(
            "/usr/bin/curl",
            ["-s", "-o", "/dev/null", "-w", "%{http_code} %{content_type} %{size_download}"]
                + ["-H", program.client.extra.trimmingCharacters(in: .newlines)]
                + ["http://127.0.0.1:\(receiver.port)\(path)"]
        )
        #expect(file.output == "200 audio/wav 16044")
        #expect(try program.get("devices/d1/audio/sound/2026-11-21/records.ndjson").status == 404)
        let events = try program.rows("devices/d1/events?source=s1")
        #expect(events.count == 2)
        #expect((events[0]["detail"] as? [String: Any])?["records"] as? Int == 5)
        #expect(try program.lines("devices/d1/events?format=csv&limit=2").pages == 3)
        let later = "devices/d1/events?from=2026-11-21T00:00:03Z"
        #expect(try program.rows(later).count == 2)
        #expect(try program.rows("devices/d1/events?kind=none").isEmpty)
        let days = try program.rows("devices/d1/days")
        #expect(days[0]["streams"] as? [String] == ["sound", "walks", "waypost_events"])
        #expect(try program.rows("devices/d1/days?to=2026-11-21").isEmpty)
        #expect(try program.rows("devices/d1/days?from=2026-11-21").count == 1)
    }

    /// From the index and from the records, with the same result.
    @Test func series_haveMinimumMeanAndMaximum() throws {
        let receiver = try ReceiverProcess()
        for day in [Self.first, Self.second] {
            let weather = (0..<120).map { ($0 * 60, #""temperature_c":\#($0 % 10)"#) }
            try receiver.send("weather", on: day, weather)
        }
        let program = try APIClient(receiver)
        try program.expectIndexed(240)
        func series(_ query: String) throws -> ([String: Any], [String: Any]) {
            let all = try program.object("devices/d1/series?from=2026-11-21&to=2026-11-23&\(query)")
            return (all, (all["series"] as? APIClient.Table)?.first ?? [:])
        }
        let (index, coarse) = try series("points=500")
        #expect(index["source"] as? String == "index")
        #expect(index["step_s"] as? Int == 600)
        #expect(coarse["key"] as? String == "temperature_c")
        #expect(coarse["unit"] as? String == "°C")
        #expect((coarse["time_ms"] as? [Int])?.first == 1_795_219_200_000)
        #expect(coarse["records"] as? [Int] == Array(repeating: 10, count: 24))
        #expect(coarse["min"] as? [Double] == Array(repeating: 0, count: 24))
        #expect(coarse["mean"] as? [Double] == Array(repeating: 4.5, count: 24))
        #expect(coarse["max"] as? [Double] == Array(repeating: 9, count: 24))
        let (records, fine) = try series("points=2000&key=temperature_c&stream=weather")
        #expect(records["source"] as? String == "records")
        #expect((fine["records"] as? [Int])?.reduce(0, +) == 240)
        let (_, few) = try series("points=2")
        #expect((few["records"] as? [Int])?.reduce(0, +) == 240)
        #expect((few["records"] as? [Int])?.count ?? 0 <= 2)
        #expect(try series("key=none").1.isEmpty)
        let csv = try program.get("devices/d1/series?from=2026-11-21&to=2026-11-23&format=csv")
        #expect(csv.body.components(separatedBy: "\r\n").count == 26)
        #expect(csv.body.contains("2026-11-21T00:00:00.000Z,weather,,temperature_c,10,0,4.5,9\r\n"))
    }

    @Test func sameData_isNotSentTwice() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let program = try APIClient(receiver)
        try program.expectIndexed(1)
        let path = "devices/d1/days"
        let answer = try program.get(path)
        let tag = try #require(answer.header.firstMatch(of: /ETag: ("[0-9a-f]+")/)).1
        #expect(answer.header.contains("Cache-Control: private, no-cache"))
        let token = program.client.extra
        program.client.extra = "\(token)If-None-Match: W/\"x\", \(tag)\r\n"
        let again = try program.get(path)
        #expect(again.status == 304)
        #expect(again.body.isEmpty)
        program.client.extra = "\(token)Accept: text/csv\r\n"
        let csv = try program.get(path)
        #expect(csv.header.contains("Content-Type: text/csv"))
        #expect(csv.body.hasPrefix("date,records,first,last,streams\r\n2026-11-21,1,"))
        #expect(try program.get("\(path)?format=json").header.contains("application/json"))
    }
}
