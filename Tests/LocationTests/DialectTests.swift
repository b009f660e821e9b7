// Lines of other gpsd releases than libgps, through the whole source.
import Host
import Records
import SourceSupport
import StatusBoard
import Support
import Testing

import Location

@Suite struct DialectTests {
    /// Runs a source over these lines.
    private func fixes(
        _ lines: [String],
        until isDone: (AdapterFixture) -> Bool = { !$0.sink.fixes.isEmpty }
    ) throws -> AdapterFixture {
        let server = try LineServer { _ in lines.map { $0 + "\r\n" }.joined() }
        defer { server.close() }
        let fixture = try AdapterFixture(port: server.port)
        try waitUntil("the lines are taken in") { isDone(fixture) }
        fixture.finish()
        return fixture
    }

    private static let time = "2026-12-01T10:00:00.000Z"

    @Test func blanksBetweenTheParts_areNoMatter() throws {
        let fixture = try fixes([
            #"{"class": "TPV", "device": "/dev/tty A", "mode": 3, "time": "\#(Self.time)", "lat": 52.1, "lon": 13.7, "altMSL": 40.0 }"#
        ])
        let fix = try #require(fixture.sink.fixes.first)
        #expect((fix.latitude, fix.longitude) == (52.1, 13.7))
        #expect(fix.receiverTime?.rfc3339 == Self.time)
        #expect(fixture.board.state.value?.device.hasSuffix(" /dev/tty A") == true)
    }

    /// `alt` alone, as gpsd up to 3.18 has it; later it may be above the ellipsoid.
    @Test(
        arguments: [
            ("3.17", 1343.127), ("3.18.1", 1343.127), ("2.95", 1343.127), ("3.19", nil),
            ("3.25", nil), ("4.1", nil), ("git", nil),
        ] as [(String, Double?)]
    )
    func altitude_isAboveMeanSeaLevel_whereTheReleaseSaysSo(
        release: String,
        altitude: Double?
    ) throws {
        let fixture = try fixes([
            #"{"class":"VERSION","release":"\#(release)","rev":"\#(release)","proto_major":3,"proto_minor":12}"#,
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"\#(Self.time)","lat":46.5,"lon":7.5,"alt":1343.127,"epv":32.3}"#,
        ])
        #expect(fixture.sink.fixes.first?.altitude == altitude)
    }

    /// gpsd before 3.0.
    @Test func timeThatIsANumber_isRead() throws {
        let fixture = try fixes([
            #"{"class":"VERSION","release":"2.95","rev":"2.95","proto_major":3,"proto_minor":3}"#,
            #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/x","activated":1796119199.25}]}"#,
            #"{"class":"TPV","device":"/dev/x","time":1796119200.500,"ept":0.005,"lat":46.5,"lon":7.5,"alt":1343.1,"eph":36.0,"mode":3}"#,
        ])
        let fix = try #require(fixture.sink.fixes.first)
        #expect(fix.receiverTime?.rfc3339 == "2026-12-01T10:00:00.500Z")
        #expect(fixture.dropped == 0)
    }

    /// Four constellations on three bands: more satellites than libgps has room for.
    @Test func skyOf300Satellites_isCounted() throws {
        let satellites = (1...300).map {
            #"{"PRN":\#($0),"gnssid":0,"svid":\#($0),"sigid":0,"az":12.0,"el":34.0,"ss":28.0,"used":\#($0 % 2 == 0),"health":1,"qual":7,"freqid":1}"#
        }
        let sky =
            #"{"class":"SKY","device":"/dev/x","satellites":["#
            + satellites.joined(separator: ",") + "]}"
        #expect((35_000...40_000).contains(sky.utf8.count))
        let fixture = try fixes([
            sky,
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"\#(Self.time)","lat":46.5,"lon":7.5}"#,
        ])
        #expect(fixture.sink.fixes.first?.satellites == 150)
        #expect(fixture.dropped == 0)
    }

    /// libgps stops at the array of a member that it does not know; what it has read till then is good.
    @Test func unknownArrayAfterPosition_costsNoFix_andIsCounted() throws {
        let fixture = try fixes([
            #"{"class":"TPV","device":"/dev/x","mode":3,"time":"\#(Self.time)","lat":46.5,"lon":7.5,"extra":[1,2],"speed":3.0}"#
        ])
        let fix = try #require(fixture.sink.fixes.first)
        #expect((fix.latitude, fix.longitude, fix.speed) == (46.5, 7.5, nil))
        #expect(fix.receiverTime?.rfc3339 == Self.time)
        #expect(fixture.dropped == 1)
    }

    @Test(arguments: [
        #"{"class":"TPV","device":"/dev/x","mode":3,"lat":46.5,"extra":[1,2],"lon":7.5}"#,
        #"{"class":"TPV","device":"/dev/x","lat":46.5,"lon":7.5,"extra":[1,2],"mode":3}"#,
        #"{"class":"TPV","device":"/dev/x","mode":3,"lat":46.5,"lon":"east"}"#,
        #"{"class":"TPV","device":"/dev/x","mode":"three","lat":46.5,"lon":7.5}"#,
        #"{"class":"TPV","device":"/dev/x","extra":{"a":1},"mode":3,"lat":46.5,"lon":7.5}"#,
        #"{"class":"TPV","device":"/dev/x","mode":3,"lat":46.5,"lon":7.5"#,
    ])
    func positionThatCannotBeRead_isCounted(line: String) throws {
        let fixture = try fixes([line]) { $0.dropped > 0 }
        #expect(fixture.sink.fixes.isEmpty)
    }
}
