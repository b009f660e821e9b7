// Records in InfluxDB's line protocol, whatever a device sends.
import Foundation
import Support
import Testing

@testable import ServerBase
@testable import ServerExports

@Suite struct InfluxLineTests {
    private static let id = "0f0f0f0f-0000-8000-8000-04000000002a"

    /// Returns the line and the number of members left out; `members` follow the id and the time.
    private func point(
        _ members: String,
        id: String = id,
        time: String = "2026-11-21T04:30:07.123Z",
        stream: String = "weather",
        number: Int64 = 0
    ) -> (line: String?, leftOut: Int) {
        let text = #"{"id":"\#(id)","timestamp":"\#(time)",\#(members)}"#
        return Array(text.utf8).withUnsafeBytes { bytes in
            guard let line = RecordLine(ByteView(bytes, isMapped: false)) else {
                return (nil, -1)
            }
            var record = InfluxRecord(line)
            let point = record.point(stream: stream, device: "d1", number: number)
            return (point, record.leftOut)
        }
    }

    /// Returns the text between the tags and the time.
    private func fields(_ members: String) -> String? {
        let line = point(members).line
        let (before, after) = ("weather,device_id=d1 ", " 1795235407123000042")
        guard let line, line.hasPrefix(before), line.hasSuffix(after) else { return line }
        return String(line.dropFirst(before.count).dropLast(after.count))
    }

    @Test func eachKindOfValue_isWrittenAsItsType() {
        #expect(
            fields(#""t":21,"u":-0.50,"v":1e21,"ok":true,"off":false,"s":"a b,c=d","none":null"#)
                == #"t=21.0,u=-0.5,v=1e+21,ok=true,off=false,s="a b,c=d""#
        )
        // A field's type never changes, so 21 is a float like 21.5.
        #expect(fields(#""t":21.5"#) == "t=21.5")
    }

    @Test func hostileNamesAndStrings_areEscaped() {
        #expect(fields(#""a,b =c":1"#) == #"a\,b\ \=c=1.0"#)
        #expect(fields(#""q":"\"x\" \\ 'y'""#) == #"q="\"x\" \\ 'y'""#)
        #expect(
            fields(#""n":"a\nb\r\u0000\tc","m\nv=2 1\nw":1"#) == #"n="a b   c",m\ v\=2\ 1\ w=1.0"#
        )
        #expect(fields(#""€":"\u20ac 🚀""#) == #"€="€ 🚀""#)
        // A backslash that would start an escape.
        #expect(fields(#""a\\":1,"b\\,c":2,"d\\e":3"#) == #"a/=1.0,b/\,c=2.0,d\e=3.0"#)
        #expect(fields(#""end":"\\""#) == #"end="\\""#)
        let beacon = point(
            #""kind":"eddystone_url","beacon_id":"a b,c=d\\","rssi":-6,"telemetry":{"x":1}"#
        )
        #expect(
            beacon.line
                == #"weather,beacon_id=a\ b\,c\=d/,device_id=d1,kind=eddystone_url rssi=-6i,x=1.0 1795235407123000042"#
        )
    }

    @Test func whatCannotBeAField_isLeftOut_andCounted() {
        let long = String(repeating: "x", count: 2000)
        for member in [
            #""a":[1,2]"#, #""a":{"b":{"c":1}}"#, #""a":1e400"#, #""a":-1e999"#, #""a":"\#(long)""#,
            #""\#(long)":1"#, #""":1"#, #""_a":1"#, #""time":1"#, #""device_id":"d2""#,
            #""a":0.\#(String(repeating: "1", count: 100))"#,
        ] {
            let (line, leftOut) = point("\(member),\"b\":1")
            #expect(
                line == "weather,device_id=d1 b=1.0 1795235407123000042",
                "\(member.prefix(40))"
            )
            #expect(leftOut == 1, "\(member.prefix(40))")
        }
        let many = (0..<300).map { "\"f\($0)\":\($0)" }.joined(separator: ",")
        #expect(point(many).leftOut == 45)
        // NaN is not valid JSON; as a string it is a string.
        #expect(point(#""a":NaN"#).leftOut == -1)
        #expect(fields(#""a":"NaN""#) == #"a="NaN""#)
        // A point needs a field.
        #expect(point(#""a":[1]"#).line == nil)
    }

    @Test func hugeIntegers_keepSize_andProtocolIntegersDigits() {
        #expect(
            fields(#""n":9007199254740993,"m":123456789012345678901234567890"#)
                == "n=9007199254740992.0,m=1.2345678901234568e+29"
        )
        let fix = point(#""latitude":47.5,"longitude":-0.1,"satellites":12"#)
        #expect(fix.line?.contains("latitude=47.5,longitude=-0.1,satellites=12i ") == true)
        for (number, written) in [
            ("9223372036854775807", "9223372036854775807i"), ("9223372036854775808", nil),
            ("1.5", nil), ("1e3", nil),
        ] {
            let sighting = point(#""beacon_id":"b","rssi":\#(number),"telemetry":{"t":1}"#)
            #expect(sighting.leftOut == (written == nil ? 1 : 0))
            if let written { #expect(sighting.line?.contains("rssi=\(written)") == true) }
        }
        // The names of waypost-protocol(7), RECORDS, have no meaning in a user's stream.
        #expect(fields(#""sequence":5"#) == "sequence=5.0")
    }

    @Test func objectsAreFlat_andTheLastOfANameCounts() {
        #expect(
            fields(#""detail":{"records":5,"from":"x"}"#) == #"detail_records=5.0,detail_from="x""#
        )
        #expect(fields(#""a":1,"b":2,"a":"z""#) == #"a="z",b=2.0"#)
        let ruuvi = point(
            """
            "kind":"ruuvi","beacon_id":"c0:ff","address":"c0:ff","rssi":-71,"clock":"synced",
            "telemetry":{"temperature_c":21.50,"battery_mv":2977,"sequence":205}
            """,
            stream: "linux_bluez_beacons"
        )
        #expect(
            ruuvi.line
                == #"linux_bluez_beacons,beacon_id=c0:ff,device_id=d1,kind=ruuvi address="c0:ff",rssi=-71i,clock="synced",temperature_c=21.5,battery_mv=2977.0,sequence=205i 1795235407123000042"#
        )
    }

    @Test func soundAndBareSightings_areNoPoints() {
        for record in [
            #""audio_file":"x.ogg","average_db_level":-40"#, #""beacon_id":"b","rssi":-70"#,
            #""beacon_id":"b","rssi":-70,"telemetry":{}"#,
        ] {
            #expect(point(record).line == nil)
            #expect(point(record).leftOut == 0)
        }
    }

    /// The same record is the same point, and two in one millisecond are two.
    @Test func timeIsTheRecordsOwn() {
        func time(_ id: String, _ time: String = "2026-11-21T04:30:07.123Z", _ number: Int64 = 7)
            -> String?
        {
            point(#""a":1"#, id: id, time: time, number: number).line.map {
                String($0.split(separator: " ").last ?? "")
            }
        }
        // The row from a gateway's id, whatever the line number; the line number for other ids.
        #expect(time(Self.id, "2026-11-21T04:30:07.123Z", 99) == "1795235407123000042")
        #expect(time("0f0f0f0f-0000-8000-8000-04000000002b") == "1795235407123000043")
        #expect(time("0f0f0f0f-0000-8000-8000-0400000f4241") == "1795235407123000001")
        #expect(time("mine") == "1795235407123000007")
        #expect(time("0f0f0f0f-0000-4000-8000-04000000002a") == "1795235407123000007")
        // Digits below a millisecond are ignored.
        #expect(time("mine", "2026-11-21T05:30:07.1239+01:00") == "1795235407123000007")
        #expect(time("mine", "1969-12-31T23:59:59.999Z") == "-999993")
        // InfluxDB supports the years 1677 to 2262.
        #expect(time("mine", "2262-04-11T23:47:16Z") != nil)
        #expect(time("mine", "2263-01-01T00:00:00Z") == nil)
        #expect(point(#""a":1"#, time: "0001-01-01T00:00:00Z").leftOut == 1)
    }
}
