// The read API with queries and data that are meant to harm it.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct ReadAPIHostileTests {
    private static let day = "2026-11-21"

    @Test func wrongQueries_areRefused_andNameWhatIsWrong() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let program = try APIClient(receiver)
        try program.expectIndexed(1)
        func cursor(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("=", with: "")
        }
        let wrong = [
            ("readings?stram=x", "no parameter \\\"stram\\\" here; there are: from, to, stream"),
            ("readings?limit=0", "limit=\\\"0\\\": expected a number from 1 to 10000"),
            ("readings?limit=-1", "limit"), ("readings?limit=99999999999999999999", "limit"),
            ("readings?limit=%2B5", "limit"), ("series?points=1", "points"),
            ("readings?from=yesterday", "from=\\\"yesterday\\\": expected RFC 3339"),
            ("readings?from=2026-02-30", "from"),
            ("readings?to=\(String(repeating: "9", count: 999))", "to"),
            ("readings?from=2026-11-22&to=2026-11-21", "from has to be before to"),
            ("readings?stream=../../etc", "expected the name of a stream"),
            ("readings?stream=", "stream"), ("days?format=xml", "format"),
            ("series?from=2020-01-01&to=2026-01-01", "more than 366 days"),
            ("readings?cursor=x", "cursor"), ("readings?cursor=%FF%00", "cursor"),
            ("readings?cursor=\(cursor("2026-11-21/places/-1/0"))", "cursor"),
            ("readings?cursor=\(cursor("2026-11-21/../places/0/0"))", "cursor"),
            ("readings?cursor=\(cursor("2026-11-21/pla ces/0/0"))", "cursor"),
            ("events?cursor=\(cursor("soon/x"))", "cursor"),
            ("days?cursor=\(cursor("a/b"))", "cursor"),
        ]
        for (query, reason) in wrong {
            let answer = try program.get("devices/d1/\(query)")
            #expect(answer.status == 400, "\(query): \(answer.status)")
            #expect(answer.body.hasPrefix(#"{"error":""#), "\(query)")
            #expect(answer.body.contains(reason), "\(query): \(answer.body)")
        }
        #expect(try program.get("devices?state=happy").status == 400)
        for path in [
            "", "nothing", "devices/", "devices/d2", "devices/..", "devices/d1/",
            "devices/d1/devices",
            "devices/d1/nothing", "devices/d1/readings/x", "devices/%2e%2e/days", "devices//days",
            "devices/d1/audio/sound/2026-11-21/..%2frecords.ndjson", "devices/d1/audio/a/b/c",
            "devices/d1/audio/places/2026-11-21/07",
        ] {
            let answer = try program.get(path)
            #expect(answer.status == 404, "\(path): \(answer.status)")
            #expect(answer.body.hasPrefix(#"{"error":""#), "\(path)")
        }
        // Far ends of what can be written, and cursors behind the end.
        for query in [
            "readings?from=0000-01-01&to=9999-12-31",
            "events?from=0000-01-01T00:00:00Z&to=9999-12-31",
            "days?from=9999-12-31",
            "readings?cursor=\(cursor("2026-11-21/places/9223372036854775807/0"))",
            "readings?cursor=\(cursor("9999-12-31/z/0/9223372036854775807"))",
            "readings?beacon=%00%FF",
            "readings?key=\(String(repeating: "k", count: 9999))",
            "series?from=9999-12-30&to=9999-12-31",
            "series?from=0000-01-01&to=0000-02-01",
            "days?cursor=\(cursor("x'; DROP TABLE files; --"))",
        ] { #expect(try program.get("devices/d1/\(query)").status == 200, "\(query)") }
        try receiver.expectService()
    }

    @Test func hostileRecords_becomeGoodJSONAndCSV() throws {
        let receiver = try ReceiverProcess()
        let evil = #"=1+1\"\r\n</script>\u0000\u202e,é𝄞"#
        let numbers = ["1e14", "-0.0", "1e-320", "1e308", "9223372036854775807", "1e400", "0.1"]
        try receiver.send(
            "evil",
            on: Self.day,
            numbers.enumerated().map {
                ($0.offset, #""\#(evil)":\#($0.element),"n":\#($0.element)"#)
            }
        )
        let sighting =
            #""kind":"\#(evil)","beacon_id":"\#(evil)","rssi":-50,"telemetry":{"\#(evil)":1.5,"rssi":2}"#
        try receiver.send("beacons", on: Self.day, [(1, sighting)])
        let event = #""kind":"\#(evil)","source":"\#(evil)","detail":{"\#(evil)":[1e400,null]}"#
        try receiver.send("waypost_events", on: Self.day, [(2, event)])
        let program = try APIClient(receiver)
        try program.expectIndexed(9)
        let script = """
            import csv, io, json, sys
            text = sys.stdin.buffer.read().decode()
            if sys.argv[1] == "json": json.loads(text, parse_constant=sys.exit)
            else:
                rows = list(csv.reader(io.StringIO(text, newline="")))
                sys.exit(any(len(row) != len(rows[0]) for row in rows) or len(rows) < 2)
            """
        for resource in ["readings", "events", "days", "series?from=\(Self.day)&to=2026-11-22"] {
            for format in ["json", "csv"] {
                let path = resource + (resource.contains("?") ? "&" : "?") + "format=\(format)"
                let body = try program.get("devices/d1/\(path)").body
                let read = try Process.run("/usr/bin/python3", ["-c", script, format], input: body)
                #expect(read.status == 0, "\(path): \(read.error) \(body)")
            }
        }
        let readings = try program.columns("devices/d1/readings?stream=evil&key=n")
        let tiny = try #require(Double("1e-320"))
        #expect(readings["value"] as? [Double] == [1e14, 0, tiny, 0.1])
        let beacons = try program.columns("devices/d1/readings?stream=beacons")
        #expect(beacons["key"] as? [String] == ["rssi", "=1+1\"\r\n</script>\0\u{202e},é𝄞"])
    }

    /// More names than a file's index has room for.
    @Test func anyNumberOfNames_costsABoundedIndex() throws {
        let receiver = try ReceiverProcess()
        let heard = (0..<300).map {
            ($0, #""kind":"k","beacon_id":"b\#($0)","rssi":-50,"telemetry":{"t_c":1}"#)
        }
        try receiver.send("beacons", on: Self.day, heard)
        let members = (0..<100).map { #""n\#($0)":1"# }.joined(separator: ",")
        try receiver.send("many", on: Self.day, [(0, members)])
        let program = try APIClient(receiver)
        try program.expectIndexed(301)
        let kept = try receiver.sql(
            "SELECT stream, left_out, (SELECT count(*) FROM series WHERE file=files.id) FROM files ORDER BY stream",
            in: ".receiver-index.sqlite"
        )
        #expect(kept == "[('beacons', 200, 400), ('many', 60, 40)]\n")
        let series = try program.object(
            "devices/d1/series?from=\(Self.day)&to=2026-11-22&points=10"
        )
        #expect(series["cut"] as? Bool == true)
        #expect((series["series"] as? [Any])?.count == 100)
        // The records have all of them.
        #expect(try program.lines("devices/d1/readings?format=csv&limit=10000").lines.count == 700)
    }

    /// Many requests at once are refused rather than queued without end; gateways are served.
    @Test func manyRequestsAtOnce_leaveRoomForGateways() throws {
        let receiver = try ReceiverProcess(["--behind-proxy"])
        let numbers = (0..<2000).map { ($0 * 40, #""n":\#($0),"m":\#($0)"#) }
        try receiver.send("weather", on: Self.day, numbers)
        let program = try APIClient(receiver)
        try program.expectIndexed(2000)
        let head =
            "GET /api/v1/devices/d1/readings?limit=10000 HTTP/1.1\r\nHost: r\r\n\(program.client.extra)\r\n"
        let statuses = Locked<[Int]>([])
        let port = receiver.port
        try withThreads(40) { _ in
            guard let client = try? RawClient(port: port) else { return }
            client.send(head)
            if let status = client.answer()?.status { statuses.update { $0.append(status) } }
        }
        #expect(statuses.value.count == 40)
        #expect(statuses.value.contains(200))
        #expect(statuses.value.allSatisfy { [200, 429, 503].contains($0) }, "\(statuses.value)")
        try receiver.expectService()
    }
}
