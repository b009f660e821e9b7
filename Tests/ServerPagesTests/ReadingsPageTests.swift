// Readings and beacons on the day page, and the page of records.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct ReadingsPageTests {
    private static let day = "2026-11-21"

    @Test func streamNumbers_haveUnits_orderedByInterest() throws {
        let receiver = try ReceiverProcess()
        // From 1 h to 2 h and from 3 h to 4 h, newest first.
        let seconds = (0..<60).map { 3600 + $0 * 60 } + (0..<60).map { 10_800 + $0 * 60 }
        try receiver.send(
            "weather",
            on: Self.day,
            seconds.reversed().map {
                (
                    $0,
                    #""temperature_c":\#(Double($0) / 1000),"wet":true,"free_bytes":2000000,"<b>":"x","odd_v":1e400,"pm_ug_m3":7"#
                )
            }
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: "Readings (weather)")
        for part in [
            "<b>temperature</b> 14.3 °C <span class=\"soft\">3.6 °C to 14.3 °C, mean 9.0 °C</span>",
            "<b>free</b> 2.0 MB", "<b>pm</b> 7 µg/m³", #"data-stream="weather""#,
        ] { #expect(html.contains(part), "\(part)") }
        // The usual quantities come first, counters are folded, other values are left out.
        let keys = html.matches(of: /data-key="([^"]+)"/).map { String($0.1) }
        #expect(keys == ["temperature_c", "pm_ug_m3", "free_bytes"])
        let folded = try #require(html.firstRange(of: "<summary>1 counter</summary>"))
        let free = try #require(html.firstRange(of: "free_bytes"))
        #expect(folded.upperBound <= free.lowerBound)
        #expect(html.contains("120 records in 2.0 h of 24 h"))
    }

    @Test func beacons_areShown_theMostHeardFirst() throws {
        let receiver = try ReceiverProcess()
        func sighting(_ beacon: String, _ rssi: Int, _ telemetry: String) -> String {
            #""kind":"ruuvi","beacon_id":"\#(beacon)","address":"a","rssi":\#(rssi),"telemetry":{\#(telemetry)}"#
        }
        let often = (0..<30).map {
            ($0 * 60, sighting("<often>", -50 - $0, #""temperature_c":\#($0)"#))
        }
        let seldom = (0..<45).map { ($0 * 700, sighting("B\($0)", -90, "")) }
        // Without a name.
        let unnamed = [(5, #""kind":"manufacturer","address":"c2:00","rssi":-71"#)]
        try receiver.send("linux_bluez_beacons", on: Self.day, often + seldom + unnamed)
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page(
            "/device/d1/\(Self.day)",
            with: "47 beacons. The 40 heard most are shown."
        )
        let names = html.matches(of: /<h3><a href="\/beacon\/[^"]+">([^<]+)</).map { String($0.1) }
        #expect(names.count == 40)
        #expect(names.first == "&lt;often&gt;")
        #expect(html.contains("ruuvi, 30 sightings, -79 to -50 dBm"))
        #expect(html.contains("ruuvi, 1 sighting, -90 to -90 dBm"))
        #expect(html.contains("<b>temperature</b> 29 °C"))
        let figure = #"data-beacon="&lt;often&gt;"><figure data-key="temperature_c" data-unit="°C""#
        #expect(html.contains(figure))
        #expect(
            html.contains("<b>signal strength</b> -79 dBm")
                || html.contains("<b>signal strength</b> -79.0 dBm")
        )
    }

    /// Extreme numbers everywhere that the page shows numbers.
    @Test func hostileNumbers_endNothing() throws {
        let receiver = try ReceiverProcess()
        let maximum = "9223372036854775807"
        let numbers = [
            "999999999999999", "-999999999999999", "1e308", "-1e308", maximum, "1e-320", "-0.0",
        ]
        for (index, number) in numbers.enumerated() {
            let names = [
                "battery_percent", "battery_v", "battery_mv", "free_bytes", "pending", "altitude",
                "n", "n_c",
                "average_db_level", "duration",
            ]
            let members = names.map { #""\#($0)":\#(number)"# }.joined(separator: ",")
            try receiver.send(
                "s\(index)",
                on: Self.day,
                [(index, members + #","latitude":90,"longitude":-180"#)]
            )
            try receiver.send("r\(index)", on: Self.day, [(index, members)])
            try receiver.send(
                "b\(index)",
                on: Self.day,
                [
                    (
                        index,
                        #""rssi":\#(number),"address":"a","kind":"k","telemetry":{"x_c":\#(number)}"#
                    )
                ]
            )
            let time = RawRequest.time()
            let event =
                #","kind":"gap","source":"s","detail":{"records":\#(maximum),"free_bytes":\#(number)}"#
            #expect(try receiver.send(ids: ["e\(index)"], padding: event, time: time) == 200)
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: "Readings (s6)")
        #expect(html.contains("Beacons (b6)"))
        for path in [
            "/", "/device/d1", "/device/d1/\(Self.day)/s4", "/device/d1/\(Self.day)/s0.gpx",
        ] {
            #expect(try browser.get(path).status == 200, "\(path)")
        }
    }

    /// From the index: the file is larger than what is read for a page.
    @Test func largeFile_isDrawnWhole() throws {
        let receiver = try ReceiverProcess()
        let text = String(repeating: "x", count: 100_000)
        for batch in 0..<3 {
            let records = (0..<100).map {
                (batch * 28_800 + $0 * 288, #""n":\#($0),"text":"\#(text)""#)
            }
            try receiver.send("notes", on: Self.day, records)
        }
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page("/device/d1/\(Self.day)", with: "300 records in")
        #expect(html.contains(#"<b>n</b> 99 <span class="soft">0 to 99, mean 49.5"#))
    }

    @Test func record_isInWordsOfPeople_withTheWireNames() throws {
        let receiver = try ReceiverProcess()
        let sighting =
            #""kind":"eddystone_uid","beacon_id":"c1:01","address":"c1:01","address_type":"random_static","rssi":-70,"telemetry":{"battery_mv":2900},"clock":"synced""#
        try receiver.send("beacons", on: Self.day, [(0, sighting)])
        try receiver.send("other", on: Self.day, [(0, #""note":"random_static","address":"x""#)])
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/device/d1/\(Self.day)/beacons").body
        for part in [
            #"<li title="kind: eddystone_uid"><span>kind </span>Eddystone UID"#,
            #"<li title="address_type: random_static"><span>address type </span>random, static"#,
            #"<li title="telemetry.battery_mv"><span>battery voltage </span>2900 mV"#,
            #"<li title="rssi"><span>signal strength </span>-70 dBm"#,
        ] { #expect(html.contains(part), "\(part)") }
        #expect(!html.contains("<span>address </span>") && !html.contains("synced"))
        let other = try browser.get("/device/d1/\(Self.day)/other").body
        #expect(other.contains("<span>note </span>random_static"))
        #expect(other.contains("<span>address </span>x"))
        let device = try browser.page(
            "/device/d1",
            with: #"href="/device/d1/\#(Self.day)/beacons""#
        )
        #expect(device.contains(#"<th scope="row" title="beacons"><a href="#))
    }

    @Test func records_areShownAsTheyCame_theNewestFirst() throws {
        let receiver = try ReceiverProcess()
        let evil = #"<script>alert(1)</script>"#
        let records = (0..<250).map {
            (
                $0,
                #""temperature_c":\#($0).50,"\#(evil)":"\#(evil)","deep":{"flag":true,"list":[1,{"a":null}]}"#
            )
        }
        try receiver.send("weather", on: Self.day, records)
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/device/d1/\(Self.day)/weather").body
        #expect(html.contains(">Older records<"))
        #expect(!html.contains("<script>"))
        for part in [
            "<li title=\"temperature_c\"><span>temperature </span>249.50 °C",
            "<span>deep: flag </span>yes",
            "<li title=\"deep.list\"><span>deep: list </span>[1,{&quot;a&quot;:null}]",
            "<span>&lt;script&gt;alert(1)&lt;/script&gt; </span>&lt;script&gt;",
        ] { #expect(html.contains(part), "\(part)") }
        let times = html.matches(of: /<th scope="row"><time datetime="[^"]+">([^<]+)/)
        #expect(times.count == 25)
        #expect(times.first?.1 == "2026-11-21 00:04:09.000")
        #expect(try browser.get("/device/d1/\(Self.day)/none").status == 404)
    }
}
