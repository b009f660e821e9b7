// The list of beacons, and the page of each.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct BeaconsPageTests {
    private static let ibeacon = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/2"
    private static let today = String(RawRequest.time().prefix(10))
    private static let weekAgo = String(RawRequest.time(secondsAgo: 7 * 86_400).prefix(10))
    private static let index = ".receiver-index.sqlite"

    private static func sighting(_ beacon: String, _ rssi: Int, _ telemetry: String = "") -> String
    {
        #""kind":"ruuvi","beacon_id":"\#(beacon)","address":"aa:bb","rssi":\#(rssi),"telemetry":{\#(telemetry)}"#
    }

    private static func written(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    private static func shown(_ html: String) -> [String] {
        html.matches(of: /<th scope="row"><a href="\/beacon\/[^"]+">([^<]+)/).map { String($0.1) }
    }

    private func receiver(_ count: Int, _ send: (ReceiverProcess) throws -> Void) throws
        -> ReceiverProcess
    {
        let receiver = try ReceiverProcess()
        try send(receiver)
        let rows = "SELECT count(*) FROM beacons"
        try receiver.waitUntil(rows, gives: "[(\(count),)]\n", in: Self.index)
        return receiver
    }

    @Test func beacons_areOrdered_byBatteryToo() throws {
        let receiver = try receiver(3) { receiver in
            for (day, battery) in [(Self.weekAgo, 2950), (Self.today, 2880)] {
                let tag = Self.sighting(
                    "c1:01",
                    -61,
                    #""battery_mv":\#(battery),"temperature_c":9.5"#
                )
                try receiver.send("beacons", on: day, [("00:00:00", tag)])
            }
            let others = [
                ("00:00:01", Self.sighting("c1:02", -70, #""battery_percent":95"#)),
                ("00:00:02", Self.sighting("phone", -80)),
            ]
            try receiver.send("beacons", on: Self.today, others)
        }
        #expect(try receiver.command("label", "beacon", "c1:02", "--label", "Fox <7>").status == 0)
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/beacons").body
        #expect(Self.shown(html) == ["phone", "Fox &lt;7&gt;", "c1:01"])
        #expect(
            html.contains(
                #"Lowest battery: <a href="/beacon/c1%3A01">c1:01</a>, 2.88 V, −0.07 in 7 days."#
            )
        )
        #expect(html.contains("temperature 9.5 °C, signal strength -61 dBm"))
        #expect(html.contains(#" by <a href="/device/d1/\#(Self.today)?zone=UTC">d1</a>"#))
        #expect(!html.contains("<form class=\"names\""))
        func shown(_ query: String) throws -> [String] {
            Self.shown(try browser.get("/beacons?\(query)").body)
        }
        #expect(try shown("sort=battery") == ["c1:01", "Fox &lt;7&gt;", "phone"])
        #expect(try shown("sort=name") == ["Fox &lt;7&gt;", "c1:01", "phone"])
        #expect(try shown("q=c1+FOX") == ["Fox &lt;7&gt;"])
        #expect(try browser.get("/beacons?q=%3Cb%3E").body.contains("No beacon has this"))
        #expect(try receiver.command("index", "check").status == 0)
    }

    @Test func beacon_hasDevicesAndDays_whateverItsIdIs() throws {
        let evil = "<b>/../"
        let receiver = try receiver(2) { receiver in
            for (day, rssi) in [(Self.weekAgo, -50), (Self.today, -90)] {
                let records = (0..<3).map { ($0, Self.sighting(Self.ibeacon, rssi - $0)) }
                try receiver.send("beacons", on: day, records)
            }
            try receiver.send("beacons", on: Self.today, [(9, Self.sighting(evil, -60))])
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/beacon/\(Self.written(Self.ibeacon))").body
        for part in [
            "<h1>\(Self.ibeacon)</h1>", #"<a href="/device/d1">d1</a>"#, "Ruuvi",
            #"data-device="d1" data-from=""#, #"<figure data-key="rssi" "#,
            "UTC day \(Self.today)",
            #"<a href="/device/d1/\#(Self.weekAgo)?zone=UTC">"#,
            #"<td data-label="Sightings">3</td><td data-label="Strongest">-50 dBm</td>"#,
            #"<td data-label="Strongest">-90 dBm</td>"#,
        ] { #expect(html.contains(part), "\(part)") }
        // A proxy may have decoded the slashes.
        #expect(
            try browser.get("/beacon/\(Self.ibeacon)").body.contains("<h1>\(Self.ibeacon)</h1>")
        )
        let other = try browser.get("/beacon/\(Self.written(evil))")
        #expect(other.status == 200 && other.body.contains("<h1>&lt;b&gt;/../</h1>"))
        #expect(try browser.get("/beacon/none").status == 404)
        #expect(try browser.get("/beacon/").status == 404)
    }

    @Test func name_isSavedInPlace_alsoOfABeaconNotHeard() throws {
        let receiver = try receiver(1) {
            try $0.send("beacons", on: Self.today, [(0, Self.sighting(Self.ibeacon, -70))])
        }
        let browser = try PageClient(receiver, viewer: "eva", role: "editor")
        let id = Self.written(Self.ibeacon)
        #expect(
            try browser.get("/beacons").body.contains(#"name="beacon" value="\#(Self.ibeacon)""#)
        )
        for (back, place) in [
            ("/beacons?sort=name", "/beacons?sort=name"), ("//evil.example", "/beacons"),
            ("/beacons\r\nX: y", "/beacons"), ("", "/beacons"),
        ] {
            let form = "beacon=\(id)&label=Fox&back=\(Self.written(back))"
            let answer = try browser.request("POST", "/beacons", form)
            #expect(answer.status == 303 && answer.header.contains("Location: \(place)\r\n"))
        }
        #expect(try browser.get("/beacons").body.contains(">Fox</a>"))
        let none = try browser.get("/beacon/later")
        #expect(none.status == 200 && none.body.contains("No device has heard it yet."))
        #expect(try browser.request("POST", "/beacons", "beacon=later&label=Owl").status == 303)
        #expect(try Self.shown(browser.get("/beacons").body) == ["Fox", "Owl"])
        let long = String(repeating: "x", count: 81)
        let wrong = try browser.request("POST", "/beacons", "beacon=later&label=\(long)")
        #expect(wrong.status == 422 && wrong.body.contains("81 characters; use at most 80"))
        #expect(wrong.body.contains(long))
    }

    @Test func manyBeacons_comeAHundredAPage() throws {
        let receiver = try receiver(250) { receiver in
            for stream in 0..<2 {
                let records = (0..<125).map { ($0, Self.sighting("b\(stream)-\($0)", -70)) }
                try receiver.send("beacons\(stream)", on: Self.today, records)
            }
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let pages = try (1...3).map {
            Self.shown(try browser.get("/beacons?sort=name&page=\($0)").body)
        }
        #expect(pages.map(\.count) == [100, 100, 50])
        #expect(Set(pages.joined()).count == 250)
    }

    /// In any order and any parts, with dates in the future, the index is the same.
    @Test func newestSighting_doesNotDependOnTheOrder() throws {
        let receiver = try ReceiverProcess()
        func battery(_ millivolts: Int) -> String { #""battery_mv":\#(millivolts)"# }
        let sent = [
            (Self.today, 9, Self.sighting("a", -61, battery(2900))),
            (Self.today, 3, Self.sighting("a", -62, battery(2100))),
            (Self.today, 11, Self.sighting("a", -63)), (Self.weekAgo, 20, Self.sighting("a", -64)),
            ("2099-01-01", 1, Self.sighting("a", -65)),
            ("2099-01-01", 2, Self.sighting("ahead", -65)),
            (Self.today, 12, Self.sighting("last", -65)),
        ]
        for (count, (day, second, members)) in sent.enumerated() {
            try receiver.send("beacons", on: day, [(second, members)])
            // A part of its own.
            let records = "SELECT sum(records) FROM files"
            try receiver.waitUntil(records, gives: "[(\(count + 1),)]\n", in: Self.index)
        }
        let rows = "SELECT beacon, time/1000%86400, charge FROM beacons ORDER BY beacon"
        let expected = "[('a', 11, 90.0), ('last', 12, None)]\n"
        try receiver.waitUntil(rows, gives: expected, in: Self.index)
        #expect(try receiver.command("index", "check").status == 0)
        try receiver.sql("UPDATE beacons SET time=1", in: Self.index)
        let check = try receiver.command("index", "check")
        #expect(check.output.contains("beacons: 'a' 'd1' 'beacons' is not as in the file"))
        #expect(try receiver.command("index", "rebuild").status == 0)
        #expect(try receiver.sql(rows, in: Self.index) == expected)
    }
}
