// The days of a device at a glance: strips, a table and CSV.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct DaysPageTests {
    private func interval(
        _ state: String,
        _ from: String,
        _ to: String,
        _ more: String = "",
        source: String = "audio"
    ) -> (time: String, members: String) {
        let members =
            #""source":"\#(source)","state":"\#(state)","from":"\#(from)Z","to":"\#(to)Z"\#(more)"#
        return (String(from.dropFirst(11)), members)
    }

    private func effort(
        _ receiver: ReceiverProcess,
        _ day: Int,
        _ state: String,
        _ more: String,
        hours: Range<Int> = 0..<24
    ) throws {
        let date = String(format: "2026-11-%02d", day)
        let end =
            hours.upperBound == 24
            ? String(format: "2026-11-%02dT00:00:00", day + 1)
            : String(format: "\(date)T%02d:00:00", hours.upperBound)
        let from = String(format: "\(date)T%02d:00:00", hours.lowerBound)
        try receiver.send("waypost_effort", on: date, [interval(state, from, end, more)])
    }

    private func sounds(_ receiver: ReceiverProcess, _ day: Int, _ count: Int) throws {
        let records = (0..<count).map { (second: $0 * 60, members: #""duration":1"#) }
        try receiver.send("linux_alsa_audio", on: String(format: "2026-11-%02d", day), records)
    }

    /// Each kind of day, of a device that has been heard since.
    private func season() throws -> ReceiverProcess {
        let receiver = try ReceiverProcess()
        try effort(receiver, 1, "recorded", #","records":24"#)
        try sounds(receiver, 1, 22)
        try effort(receiver, 2, "recorded", #","records":4"#, hours: 0..<4)
        try effort(receiver, 2, "failed", #","reason":"no <microphone>""#, hours: 4..<24)
        try sounds(receiver, 2, 4)
        try effort(receiver, 3, "scheduled_off", "")
        for day in [4, 5] { try effort(receiver, day, "recorded", #","records":10"#) }
        try sounds(receiver, 5, 2)
        try effort(receiver, 8, "recorded", #","records":5"#)
        try sounds(receiver, 8, 5)
        let span = #""from":"2026-11-04T01:00:00.000Z","to":"2026-11-04T23:00:00.000Z""#
        let evicted =
            #""kind":"evicted","source":"storage","detail":{"stream":"audio","records":10,\#(span)}"#
        try receiver.send("waypost_events", on: "2026-11-06", [("10:00:00", evicted)])
        return receiver
    }

    @Test func csv_saysWhatIsMissing_andWhy() throws {
        let receiver = try season()
        let browser = try PageClient(receiver, viewer: "anna")
        let path = "/device/d1/days.csv?from=2026-11-01&to=2026-11-08"
        _ = try browser.page(path, with: "2026-11-08,recorded")
        // The event that the records were evicted came last.
        let csv = try browser.page(path, with: "2026-11-04,lost")
        let start = "d1,linux_alsa_audio,2026-11-"
        for line in [
            "01,recorded,24.000,0.000,0.000,0.000,0.000,,24,22,0",
            "02,failed,4.000,0.000,20.000,0.000,0.000,no <microphone>,4,4,0",
            "03,scheduled_off,0.000,24.000,0.000,0.000,0.000,,0,0,0",
            "04,lost,24.000,0.000,0.000,0.000,0.000,,10,0,10",
            "05,missing,24.000,0.000,0.000,0.000,0.000,,10,2,8",
            "06,unknown,0.000,0.000,0.000,0.000,24.000,,0,0,0",
            "08,recorded,24.000,0.000,0.000,0.000,0.000,,5,5,0",
        ] { #expect(csv.contains("\(start)\(line)\r\n"), "\(line) in \(csv)") }
        // The device says that it still holds records from that day on.
        let now = RawRequest.time()
        let health =
            #""state":"healthy","uptime_s":9,"pending":{"audio":8},"oldest_pending_at":"2026-11-04T10:00:00.000Z""#
        try receiver.send(
            "waypost_health",
            on: String(now.prefix(10)),
            [(String(now.dropFirst(11).prefix(8)), health)]
        )
        let later = try browser.page(path, with: "05,not_here_yet")
        #expect(later.contains("04,lost,"))
        let overview = try browser.page(with: ", the oldest of ")
        #expect(overview.contains(">8 records<span"))
    }

    /// Records that were evicted before the first upload, and a device that ended within a day.
    @Test func daysThatAreNotWhole_areNotRecorded() throws {
        let receiver = try ReceiverProcess()
        let span = #""from":"2026-11-01T00:00:00.000Z","to":"2026-11-01T23:59:59.000Z""#
        let evicted =
            #""kind":"evicted","source":"storage","detail":{"stream":"audio","records":10,\#(span)}"#
        try effort(receiver, 1, "recorded", #","records":10"#)
        try receiver.send("waypost_events", on: "2026-11-02", [("10:00:00", evicted)])
        try effort(receiver, 2, "recorded", #","records":5"#)
        try sounds(receiver, 2, 5)
        try effort(receiver, 3, "recorded", #","records":20"#, hours: 0..<1)
        try sounds(receiver, 3, 20)
        let browser = try PageClient(receiver, viewer: "anna")
        let path = "/device/d1/days.csv?from=2026-11-01&to=2026-11-03"
        let csv = try browser.page(path, with: "03,unknown,1.000,0.000,0.000,0.000,23.000,,20,20,0")
        #expect(csv.contains("01,lost,24.000,0.000,0.000,0.000,0.000,,10,0,10"))
        #expect(csv.contains("02,recorded,24.000,"))
    }

    /// A gateway of an older version sends no effort; its records say that it recorded.
    @Test func recordsBeforeTheFirstEffort_areRecorded() throws {
        let receiver = try ReceiverProcess()
        for day in 1...3 { try sounds(receiver, day, 5) }
        try effort(receiver, 3, "recorded", #","records":5"#)
        let browser = try PageClient(receiver, viewer: "anna")
        let path = "/device/d1/days.csv?from=2026-11-01&to=2026-11-03"
        let csv = try browser.page(path, with: "03,recorded,24.000")
        #expect(csv.contains("02,recorded,,,,,,,,5,"))
        // Links of UTC days stay in UTC, whatever the browser's zone is.
        let page = try browser.get("/device/d1/days?year=2026").body
        #expect(page.contains(#"<a href="/device/d1/2026-11-02?zone=UTC""#))
    }

    /// Off for the winter: one record, which is of the day on which it began.
    @Test func timeOffOfMonths_isOneInterval() throws {
        let receiver = try ReceiverProcess()
        let (winter, spring) = ("2026-08-01T12:00:00", "2026-10-15T06:00:00")
        try receiver.send(
            "waypost_effort",
            on: "2026-08-01",
            [interval("off", winter, spring, #","reason":"winter""#, source: "beacons")]
        )
        try receiver.send(
            "waypost_effort",
            on: "2026-10-15",
            [interval("recorded", spring, "2026-10-16T00:00:00", source: "beacons")]
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let path = "/device/d1/days.csv?from="
        let all = try browser.page(
            path + "2026-07-01&to=2026-10-15",
            with: "-10-15,recorded,18.000"
        )
        #expect(all.components(separatedBy: "\r\n").count == 78)
        #expect(all.contains("08-01,off,0.000,0.000,0.000,12.000,0.000,winter"))
        #expect(all.contains("09-15,off,0.000,0.000,0.000,24.000,0.000,winter"))
        #expect(all.contains("10-15,recorded,18.000,0.000,0.000,6.000,0.000,winter"))
        // It began before the time that is asked for.
        let part = try browser.get(path + "2026-09-10&to=2026-09-11").body
        #expect(part.components(separatedBy: ",off,").count == 3)
    }

    @Test func strips_leadToDays_andAreATable() throws {
        let receiver = try season()
        try receiver.send("weather", on: "2026-11-05", [("04:00:00", #""t":1"#)])
        let browser = try PageClient(receiver, viewer: "anna")
        let path = "/device/d1/days?year=2026"
        let html = try browser.page(path, with: "weather")
        for part in [
            "<title>Mon 2026-11-02: recorded 4.0 h, failed 20.0 h (no &lt;microphone&gt;)</title>",
            "<title>Tue 2026-11-03: scheduled off 24.0 h</title>",
            "<title>Wed 2026-11-04: recorded 24.0 h, 10 of 10 records lost</title>",
            "<title>Thu 2026-11-05: 1 record</title>",
            "<title>Fri 2026-11-06: unknown 24.0 h</title>",
            #"<td data-label="Sound">recorded 4.0 h, failed 20.0 h (no &lt;microphone&gt;)</td>"#,
            #"<th scope="row"><a href="/device/d1/2026-11-04?zone=UTC">Wed 2026-11-04</a></th>"#,
            #"href="/device/d1/days?year=2025""#, "days.csv?from=2026-01-01&amp;to=2026-",
        ] { #expect(html.contains(part), "\(part)") }
        // A sixth of the planned time at the bottom, the rest above it.
        let cell = try #require(html.firstMatch(of: /2026-11-02: .*?<\/a>/)).output
        #expect(cell.contains(#"<rect class="recorded" x="1" width="1" y="8" height="2">"#))
        #expect(cell.contains(#"<rect fill="url(#failed)" x="1" width="1" y="0" height="8">"#))
        // One cell of each strip is reached by the Tab key.
        #expect(html.matches(of: /<a href="[^"]*"><title>/).count == 2)
        #expect(try browser.get("/device/d1").body.contains(#"<a href="/device/d1/days">"#))
        #expect(try browser.get("/device/d1/days?year=1999").body.contains("No data in this time."))
    }

    @Test func overview_hasTheWorstOfTheLastDays() throws {
        let receiver = try ReceiverProcess()
        let now = Date()
        for ago in 1...3 {
            let days = [ago, ago - 1].map { now.addingTimeInterval(-Double($0) * 86_400) }
            let dates = days.map { String($0.ISO8601Format().prefix(10)) }
            let ends = (dates[0] + "T00:00:00", dates[1] + "T00:00:00")
            let state = ago == 2 ? "failed" : "recorded"
            try receiver.send(
                "waypost_effort",
                on: dates[0],
                [
                    interval("recorded", ends.0, ends.1, source: "location"),
                    interval(state, ends.0, ends.1, #","reason":"gone""#),
                ]
            )
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page(with: "2 days recorded, 1 day failed")
        let strip = try #require(html.firstMatch(of: /<svg class="fortnight".*?<\/svg>/)).output
        #expect(strip.contains(#"<rect fill="url(#failed)" x="11" width="1" y="0""#))
        #expect(html.components(separatedBy: #"<pattern id="failed""#).count == 2)
        #expect(try browser.get("/days.csv").body.contains(",failed,0.000,0.000,24.000,"))
    }

    @Test func requestsForDays_areChecked() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        for (path, status) in [
            ("/device/d1/days", 200), ("/device/d1/days.csv", 200), ("/days.csv", 200),
            ("/device/none/days", 404), ("/device/none/days.csv", 404), ("/days", 404),
            ("/device/d1/days?year=x", 400), ("/device/d1/days?year=9999", 400),
            ("/days.csv?from=2026-11-22&to=2026-11-21", 400), ("/days.csv?to=2026-02-30", 400),
            ("/days.csv?from=2020-01-01", 400), ("/days.csv?from=2020-01-01&to=2020-12-31", 200),
        ] { #expect(try browser.get(path).status == status, "\(path)") }
        let file = try browser.get("/device/d1/days.csv?from=2026-11-01&to=2026-11-02")
        #expect(file.header.contains(#"filename="d1-2026-11-01-days.csv""#))
        for path in ["/device/d1/days", "/device/d1/days.csv", "/days.csv"] {
            #expect(try PageClient(receiver).get(path).status == 303, "\(path)")
        }
    }

    @Test(.enabled(if: Tab.isThere))
    func cell_saysItsHours_byPointerKeyAndTouch() throws {
        let receiver = try season()
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/days?year=2026", with: "10 of 10 records lost")
        let tab = try Tab(browser, "/device/d1/days?year=2026")
        let said = "document.querySelector('output').textContent"
        let usual = try tab.ask(said)
        func cell(_ day: String) -> String {
            "document.querySelector('.months a[href*=\"2026-11-\(day)\"]')"
        }
        func send(_ event: String, _ kind: String, to day: String) throws {
            let sent =
                "new \(kind)('\(event)', { bubbles: true, cancelable: true, key: 'ArrowRight', pointerType: 'touch' })"
            _ = try tab.ask("\(cell(day)).firstElementChild.dispatchEvent(\(sent))")
        }
        try send("pointerover", "PointerEvent", to: "04")
        #expect(try tab.ask(said) == #""Wed 2026-11-04: recorded 24.0 h, 10 of 10 records lost""#)
        try send("pointerout", "PointerEvent", to: "04")
        #expect(try tab.ask(said) == usual)
        _ = try tab.ask("\(cell("02")).focus()")
        try send("keydown", "KeyboardEvent", to: "02")
        #expect(try tab.ask("document.activeElement === \(cell("03"))") == "true")
        #expect(try tab.ask(said) == #""Tue 2026-11-03: scheduled off 24.0 h""#)
        #expect(try tab.ask("document.querySelectorAll('.months a[tabindex=\"0\"]').length") == "1")
        // The first touch shows the day, the second opens it.
        for _ in 0..<2 {
            #expect(try tab.ask("location.pathname") == #""/device/d1/days""#)
            try send("pointerdown", "PointerEvent", to: "02")
            try send("click", "PointerEvent", to: "02")
        }
        try tab.waitFor(#""/device/d1/2026-11-02""#, of: "location.pathname")
    }
}
