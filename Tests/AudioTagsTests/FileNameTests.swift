// Names of audio files, read as QutEcoacoustics' EMU reads them.
import AudioTags
import Foundation
import Host
import Testing

@Suite struct FileNameTests {
    /// A name and what EMU finds in it.
    struct Vector: Sendable, CustomTestStringConvertible {
        var name: String
        /// UTC.
        var start: String
        var offset: String
        var place: [Double]?

        var testDescription: String { name }
    }

    /// Rows of EMU's test/Fixtures/FileNameParsingFixtures.csv with an offset, the start in UTC; with
    /// `.0` where they have no fraction.
    static let vectors = [
        Vector(
            name: "20161108T075126.123456-0430_SunriseToSunset_-39.5336-131.2711.wav",
            start: "2016-11-08T12:21:26.123456Z",
            offset: "-0430",
            place: [-39.5336, -131.2711]
        ),
        Vector(
            name: "20091219T070006.789123+1130_00600.wav",
            start: "2009-12-18T19:30:06.789123Z",
            offset: "+1130"
        ),
        Vector(
            name: "20091219T070006.789+1130_00600.wav",
            start: "2009-12-18T19:30:06.789Z",
            offset: "+1130"
        ),
        Vector(
            name: "20210617T080000.0+0000_Rec2_-18.2656+144.5564.flac",
            start: "2021-06-17T08:00:00Z",
            offset: "+0000",
            place: [-18.2656, 144.5564]
        ),
        Vector(
            name: "20180226T040000.0+0000_+40.1213-075.0015+2.79CRSWGS_84.flac",
            start: "2018-02-26T04:00:00Z",
            offset: "+0000",
            place: [40.1213, -75.0015]
        ),
    ]

    /// EMU's patterns (FilenameParser.cs): a date with fraction and offset, and ISO 6709.
    private struct Parsed: Equatable {
        var prefix: String
        var digits: String
        var offset: String
        var place: [Double]?

        init(_ name: String) throws {
            let date = try NSRegularExpression(
                pattern: #"^(?<Prefix>.*)(?<Date>\d{8})(?<Separator>T)(?<Time>\d{6}\.\d{1,6})"#
                    + #"(?<Offset>[-+][\d:]{2,5}|Z)(?![-+\d:]{1,6}|Z)(?<Suffix>.*)"#
                    + #"(?<Extension>\.([a-zA-Z0-9]+))$"#
            )
            let location = try NSRegularExpression(
                pattern: #".*(?<Location>(?<Latitude>[-+NS]\d{1,2}(?:\.\d+)?)"#
                    + #"(?<Longitude>[-+NS]\d{1,3}(?:\.\d+)?)(?<Altitude>[-+][\.\d]+)?"#
                    + #"(?:CRS(?<Crs>[\w_]+))?\/?).*"#
            )
            let all = NSRange(name.startIndex..., in: name)
            let found = try #require(date.firstMatch(in: name, range: all), "\(name)")
            func group(_ group: String, _ match: NSTextCheckingResult) -> String {
                Range(match.range(withName: group), in: name).map { String(name[$0]) } ?? ""
            }
            prefix = group("Prefix", found)
            digits = group("Date", found) + "T" + group("Time", found)
            offset = group("Offset", found)
            place = location.firstMatch(in: name, range: all).map { match in
                ["Latitude", "Longitude"].compactMap { Double(group($0, match)) }
            }
        }
    }

    @Test(arguments: vectors) func name_saysToEMU_whatItsVectorSays(vector: Vector) throws {
        let start = try #require(WallTime(rfc3339: vector.start))
        var recording = Recording(device: "lake-7", start: start)
        let hours = try #require(Int(vector.offset.prefix(3)))
        let minutes = try #require(Int(vector.offset.suffix(2)))
        recording.offsetMinutes = hours * 60 + (hours < 0 ? -minutes : minutes)
        recording.place = vector.place.map { Recording.Place(latitude: $0[0], longitude: $0[1]) }
        let (own, theirs) = try (Parsed(recording.fileName(type: "flac")), Parsed(vector.name))
        #expect(own.prefix == "lake-7_")
        // Milliseconds are what a device knows.
        #expect(own.digits.prefix(19) == theirs.digits.prefix(19).padded(to: "00000000T000000.000"))
        #expect(own.digits.count == 22)
        #expect(own.offset == theirs.offset)
        #expect(own.place == theirs.place)
    }

    @Test func wholeName_isThatOfTheContract() throws {
        let start = try #require(WallTime(rfc3339: "2026-01-01T12:00:00.042Z"))
        var recording = Recording(device: "site", start: start)
        recording.place = Recording.Place(latitude: 12.345670, longitude: -98.76543)
        #expect(
            recording.fileName(type: "flac")
                == "site_20260101T120000.042000+0000_+12.34567-098.76543.flac"
        )
        recording.offsetMinutes = -210
        recording.place = nil
        #expect(recording.fileName(type: "ogg") == "site_20260101T083000.042000-0330.ogg")
    }

    /// A device's name comes from outside.
    @Test(arguments: ["../../etc/x", "..", "", "/", "a\nb\u{0}", ".hidden", "ä/é", "💩"])
    func hostileName_staysInTheFolder(device: String) throws {
        let name = Recording(device: device, start: WallTime(milliseconds: 0)).fileName(type: "wav")
        #expect(!name.hasPrefix("."))
        #expect(name.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "/") })
        #expect(try Parsed(name).digits == "19700101T000000.000000")
    }

    /// EMU found a position of -12, -34 in the first.
    @Test(arguments: [("plot-12-34", "plot_12_34"), ("a-1.5-2", "a_1.5_2"), ("lake-7", "lake-7")])
    func deviceWithoutAPosition_isReadAsNone(device: String, name: String) throws {
        let start = try #require(WallTime(rfc3339: "2026-11-21T04:30:00.123Z"))
        let file = Recording(device: device, start: start).fileName(type: "wav")
        #expect(file == "\(name)_20261121T043000.123000+0000.wav")
        #expect(try Parsed(file).place == nil)
    }

    /// As aru-metadata-parser 1.0.0, scikit-maad 1.5.2, wildrtrax and seewave read them.
    @Test func namesOfSongMeter_areSiteDayAndTime() throws {
        let start = try #require(WallTime(rfc3339: "2026-11-21T13:30:00.123Z"))
        var recording = Recording(device: "lake-7", start: start)
        recording.place = Recording.Place(latitude: 46.46, longitude: 6.84)
        #expect(
            recording.fileName(type: "wav", names: .songmeter) == "lake-7_20261121_133000.wav"
        )
        (recording.site, recording.offsetMinutes) = ("Lake meadow", 630)
        #expect(
            recording.fileName(type: "flac", number: 2, names: .songmeter)
                == "Lake-meadow_20261122_000000_2.flac"
        )
        #expect(
            recording.fileName(type: "ogg").hasPrefix("Lake-meadow_20261122T000000.123000+1030_")
        )
        var names = UsedNames(.songmeter)
        #expect(names.name(of: recording, type: "wav") == "Lake-meadow_20261122_000000.wav")
        #expect(names.name(of: recording, type: "wav") == "Lake-meadow_20261122_000000_2.wav")
    }

    @Test func secondFileOfOneStart_hasAnotherName() throws {
        let recording = Recording(device: "d", start: WallTime(milliseconds: 0))
        var names = UsedNames()
        let given = (0..<3).map { _ in names.name(of: recording, type: "wav") }
        #expect(Set(given).count == 3)
        #expect(given[0] == recording.fileName(type: "wav"))
        for name in given { #expect(try Parsed(name).offset == "+0000") }
    }

    @Test func position_isTheNearest_anHourAwayAtMost() {
        var log = PositionLog()
        #expect(log.place(at: WallTime(milliseconds: 0)) == nil)
        // Also out of order, as records arrive from a device with a backlog.
        for minute in [60, 0, 30] as [Int64] {
            let place = Recording.Place(latitude: Double(minute), longitude: 7)
            log.add(place, at: WallTime(milliseconds: minute * 60_000))
        }
        log.add(Recording.Place(latitude: 91, longitude: 0), at: WallTime(milliseconds: 900_000))
        for (minute, latitude) in [(-61, nil), (-60, 0), (14, 0), (16, 30), (44, 30), (120, 60)]
            as [(Int64, Double?)]
        {
            let place = log.place(at: WallTime(milliseconds: minute * 60_000))
            #expect(place?.latitude == latitude, "\(minute)")
        }
        #expect(log.place(at: WallTime(milliseconds: 121 * 60_000)) == nil)
    }
}

extension Substring {
    /// Returns the text with the end of another that is as long or longer.
    fileprivate func padded(to other: String) -> String {
        String(self) + other.dropFirst(count)
    }
}
