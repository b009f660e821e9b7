// The sun's times, compared with PyPI astral (Tests/Peers/sun.py) and at the poles.
import Configuration
import Foundation
import Host
import Support
import Testing

@testable import Schedule

/// 2027-01-01 in days since 1970-01-01.
let newYear: Int64 = 20_819

@Suite struct SolarDayTests {
    /// Returns the times of another program by place: noon, dawn, sunrise, sunset and dusk of days of
    /// 2026, in seconds after midnight.
    private func vectors(_ program: String) throws -> [(SitePosition, [Int64: [Int64?]])] {
        let text = try String(
            contentsOfFile: Tree.path("Tests/Fixtures/sun/\(program).csv"),
            encoding: .utf8
        )
        let step: Int64 = program == "ephem" ? 2 : 11
        var places: [(SitePosition, [Int64: [Int64?]])] = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("@ ") {
                places.append((try #require(SitePosition(String(line.dropFirst(2)))), [:]))
            } else {
                let fields = line.split(separator: ",", omittingEmptySubsequences: false)
                let day = newYear - 365 + Int64(places[places.count - 1].1.count) * step
                places[places.count - 1].1[day] = fields.map { Int64($0) }
            }
        }
        return places
    }

    private func seconds(_ event: SunEvent, _ number: Int64, _ position: SitePosition) -> Int64 {
        SolarDay(number, at: position)[event].milliseconds / 1000 - number * 86_400
    }

    /// Two programs that share nothing with NOAA's equations: VSOP87, and an ephemeris of JPL.
    @Test(arguments: ["ephem", "skyfield"])
    func aYear_isThatOfTheAlmanac(program: String) throws {
        let events = [SunEvent.noon, .dawn, .sunrise, .sunset, .dusk]
        let places = try vectors(program)
        #expect(places.count == 12)
        for (position, year) in places {
            let latitude = abs(position.latitude)
            let tolerance: Int64 = latitude < 55 ? 6 : latitude < 61 ? 10 : 45
            #expect(year.count == (program == "ephem" ? 183 : 34))
            for (day, times) in year {
                let noon = seconds(.noon, day, position)
                for (event, theirs) in zip(events, times) {
                    let ours = seconds(event, day, position)
                    // Where the sun touches the height at midnight, 0.001 degrees are minutes.
                    let isGrazing = abs(abs(ours - noon) - 43_200) < 600
                    let place = "\(event) of day \(day) at \(position.text)"
                    guard let theirs else {
                        #expect(ours == noon || isGrazing, "\(place)")
                        continue
                    }
                    #expect(abs(ours - theirs) <= (isGrazing ? 900 : tolerance), "\(place)")
                }
            }
        }
    }

    /// The days on which the white nights and the polar day end: once up to 37 minutes wrong.
    @Test(arguments: [
        ("60.17,24.94", "2026-06-20", SunEvent.dusk, "21:42:09"),
        ("52.52,13.41", "2026-06-10", .dusk, "20:17:25"),
        ("78.22,15.65", "2026-08-24", .sunset, "22:28:32"),
        ("69.97,23.27", "2026-08-15", .dusk, "21:57:14"),
    ])
    func endOfTheLightNights(place: String, date: String, event: SunEvent, time: String) throws {
        let position = try #require(SitePosition(place))
        let right = try #require(WallTime(rfc3339: "\(date)T\(time)Z"))
        let found = SolarDay(right.utcDay, at: position)[event]
        #expect(abs(found.milliseconds - right.milliseconds) <= 40_000, "\(found.rfc3339)")
    }

    @Test(arguments: [-180.0, -123.1, 0, 6.84, 151.2, 180])
    func aDay_isInOrder_andEndsWhereTheNextBegins(longitude: Double) throws {
        for latitude in [-90.0, -80, -35, 0, 46, 66.6, 89.9, 90] {
            let position = try #require(SitePosition(latitude: latitude, longitude: longitude))
            for day in stride(from: newYear, to: newYear + 365, by: 3) {
                let times = SunEvent.allCases.map { SolarDay(day, at: position)[$0] }
                // Where the sun touches the horizon, the equation of time moves them by seconds.
                for (one, next) in zip(times, times.dropFirst()) {
                    #expect(one < next + .seconds(15))
                }
                let length = times[4].milliseconds - times[0].milliseconds
                #expect((0...86_460_000).contains(length))
                #expect(SolarDay(day + 1, at: position)[.dawn] + .seconds(1) >= times[4])
                // Its date is that of the place.
                let local = times[2].milliseconds + Int64(longitude * 240_000)
                #expect(local.floorDivided(by: 86_400_000) == day)
            }
        }
    }

    @Test func polarDay_hasNoNight() throws {
        let position = try #require(SitePosition("78.2,15.6"))
        for day in newYear + 150..<newYear + 190 {
            #expect(
                SolarDay(day, at: position)[.sunset] == SolarDay(day + 1, at: position)[.sunrise]
            )
        }
    }

    @Test func position_isParsedAndWritten() {
        #expect(SitePosition("46.46,6.84")?.text == "46.46,6.84")
        #expect(SitePosition("-35, +149.1")?.longitude == 149.1)
        for wrong in [
            "", "46.46", "46.46;6.84", "91,0", "0,181", "46,46,6,84", "nan,0", "inf,1", "1e1,0",
            "46.46N,6.84E", "0x1,0", ",",
        ] {
            #expect(SitePosition(wrong) == nil, "\(wrong)")
        }
    }

    @Test func distance_crossesTheDateLine() throws {
        let (east, west) = (
            try #require(SitePosition("0,179.95")), try #require(SitePosition("0,-179.95"))
        )
        #expect(abs(east.distance(to: west) - 11_120) < 20)
        let north = try #require(SitePosition("60,10"))
        #expect(abs(north.distance(to: try #require(SitePosition("60,11"))) - 55_600) < 100)
    }
}
